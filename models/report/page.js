"use strict";

/* The template browser: reads the data of the page, shows the sentence of a table and a template. */
function startTemplateBrowser(root) {
  const tables = JSON.parse(document.getElementById("browser-data").textContent);
  const choice = document.getElementById("browser-table");
  const label = document.getElementById("browser-label");
  const result = document.getElementById("browser-result");
  const radios = [...root.querySelectorAll("input[type=radio]")];

  const outputs = () => tables[choice.value].outputs;
  const chosen = () => radios.find((radio) => radio.checked && !radio.disabled);

  /* Only templates that the table has sentences for can be chosen. */
  function offerTemplates() {
    const offered = new Set(outputs().map((output) => String(output.template)));
    for (const radio of radios) radio.disabled = !offered.has(radio.value);
    const first = radios.find((radio) => !radio.disabled);
    if (!chosen() && first) first.checked = true;
  }

  function show() {
    const radio = chosen();
    const fitting = outputs().filter((output) => radio && String(output.template) === radio.value);
    const shown = fitting.map((output) => outputList(output, radio));
    label.textContent = tables[choice.value].label;
    result.replaceChildren(...(shown.length ? shown : ["There is no sentence for this table."]));
  }

  function change() {
    offerTemplates();
    show();
  }

  root.addEventListener("change", change);
  root.hidden = false;
  change();
}

function outputList(output, radio) {
  const template = radio.closest("label").querySelector(".template").cloneNode(true);
  const rows = [
    ["Text", output.text],
    ["States", output.runs.length ? colouredRuns(output.runs) : ""],
    ["Template", template],
    ["Note", output.note],
  ];
  const list = node("dl", "output");
  for (const [name, value] of rows) {
    if (value) list.append(node("dt", "", name), node("dd", "", value));
  }
  return list;
}

function colouredRuns(runs) {
  const line = node("span");
  for (const [state, words] of runs) {
    line.append(node("span", `run s${state}`, `${words} `, node("small", "", String(state))), " ");
  }
  return line;
}

/* Children that are strings become text, never markup. */
function node(name, className = "", ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/* The n-gram table: rows with the given states next to each other, typed or clicked. */
function startNgramFilter(root) {
  const field = document.getElementById("ngram-states");
  const status = document.getElementById("ngram-status");
  const rows = [...root.querySelectorAll("tbody tr")];
  const buttons = [...root.querySelectorAll("button")];

  function filter() {
    const wanted = (field.value.match(/\d+/g) || []).map(Number).join(" ");
    for (const row of rows) row.hidden = !` ${row.dataset.states} `.includes(wanted && ` ${wanted} `);
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(button.dataset.state === wanted));
    }
    const shown = rows.filter((row) => !row.hidden).length;
    status.textContent = `${shown} of ${rows.length} n-grams`;
  }

  function toggle(event) {
    const clicked = event.target.closest("[data-state]");
    if (!clicked) return;
    field.value = field.value.trim() === clicked.dataset.state ? "" : clicked.dataset.state;
    filter();
  }

  field.addEventListener("input", filter);
  root.addEventListener("click", toggle);
  root.querySelector(".controls").hidden = false;
  filter();
}

for (const [id, start] of [
  ["template-browser", startTemplateBrowser],
  ["ngram-browser", startNgramFilter],
]) {
  const root = document.getElementById(id);
  if (root) start(root);
}
