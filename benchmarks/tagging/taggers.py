"""One BiLSTM under the linear-chain CRF of each library, by its documented use.

Parameters are the same in all of them, by name, shape and initial value: `start_transitions`,
`end_transitions` and `transitions`, as pytorch-crf has them. So are likelihoods, up to rounding:
training differs in nothing but time and memory.

- `structdist`: `structdist.compat.CRF`, the drop-in.
- `pytorch-crf`: `torchcrf.CRF`.
- `torch-struct`: `torch_struct.LinearChainCRF` over edges. It has no start and end scores, and no
  sentence of one token; a first node in a fixed state makes room for all that.
"""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Sequence
from importlib.util import find_spec

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from benchmarks.memory import peak_bytes
from benchmarks.rivals import torch_struct_class
from benchmarks.spans.batches import Batch
from benchmarks.spans.encoder import Encoder
from benchmarks.spans.taggers import Tagger
from structdist.compat import CRF
from structdist.tagging import (
    OUTSIDE,
    Span,
    allowed_transitions,
    encode,
    spans_from_tags,
    tag_names,
    tags_from_spans,
)

NEVER = -1e9  # a finite score of what must not be, which torch-struct asks for


class LibraryTagger(Tagger):
    """A tagger whose CRF is timed apart from its encoder.

    Attributes:
        crf: the layer, with pytorch-crf's parameters.
        constrained: whether `find` keeps to well-formed tags. Training never does.
        crf_seconds: CPU time of the CRF, forward and backward, in all calls of `loss` so far.
        ill_formed: of how many sentences `find` gave ill-formed tags so far.
    """

    def __init__(self, encoder: Encoder, labels: Sequence[str], longest: int) -> None:
        self.tags = tag_names(labels[1:], "BIO")
        super().__init__(encoder, labels, longest, len(self.tags))
        self.crf = self.make_crf(len(self.tags))
        self.constrained, self.crf_seconds, self.ill_formed = False, 0.0, 0

    def make_crf(self, num_tags: int) -> nn.Module:
        return CRF(num_tags, batch_first=True)

    @abstractmethod
    def log_likelihood(self, emissions: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
        """The mean over the batch."""

    @abstractmethod
    def decode(self, crf: nn.Module, emissions: Tensor, lengths: Tensor) -> list[list[int]]:
        """The best tags of each sentence."""

    def loss(self, batch: Batch) -> Tensor:
        emissions, tags = self.output(self.encoder(batch)), self.gold_tags(batch)
        begin = time.process_time()
        loss, grads = self.loss_and_gradients(emissions, tags, batch.lengths)
        self.crf_seconds += time.process_time() - begin
        leaves = [emissions, *self.crf.parameters()]
        surrogate = sum((x * grad).sum() for x, grad in zip(leaves, grads, strict=True))
        return loss + surrogate - surrogate.detach()  # has the value and the gradient of the loss

    def loss_and_gradients(
        self, emissions: Tensor, tags: Tensor, lengths: Tensor
    ) -> tuple[Tensor, Sequence[Tensor]]:
        """The loss alone, and its gradient by the emissions and by the parameters of the CRF."""
        leaf = emissions.detach().requires_grad_()
        loss = -self.log_likelihood(leaf, tags, lengths)
        return loss.detach(), torch.autograd.grad(loss, [leaf, *self.crf.parameters()])

    def crf_bytes(self, batch: Batch) -> int:
        """The most that the CRF allocates at one time, forward and backward."""
        with torch.no_grad():
            emissions = self.output(self.encoder(batch))
        given = emissions, self.gold_tags(batch), batch.lengths
        return peak_bytes(lambda: self.loss_and_gradients(*given), emissions.device)

    def gold_tags(self, batch: Batch) -> Tensor:
        """[B, T], zeros beyond the lengths."""
        spans = [sentence.spans for sentence in batch.sentences]
        return encode(tags_from_spans(spans, batch.lengths, "BIO"), self.tags).clamp(min=0)

    def find(self, batch: Batch) -> list[list[Span]]:
        crf = self.constrained_crf() if self.constrained else self.crf
        numbers = self.decode(crf, self.output(self.encoder(batch)), batch.lengths)
        tags = [[self.tags[k] for k in row] for row in numbers]
        repaired = [repair(row) for row in tags]
        self.ill_formed += sum(a != b for a, b in zip(tags, repaired, strict=True))
        return spans_from_tags(repaired, "BIO")

    def constrained_crf(self) -> nn.Module:
        """The layer with what BIO forbids forbidden, as its users do it: by its scores."""
        crf, masks = copy.deepcopy(self.crf), allowed_transitions(self.tags, "BIO")
        with torch.no_grad():
            crf.transitions.masked_fill_(~masks.allowed, NEVER)
            crf.start_transitions.masked_fill_(~masks.allowed_start, NEVER)
        return crf


def repair(tags: Sequence[str]) -> list[str]:
    """Tags in which an I that follows nothing of its label is a B: how conlleval reads them."""
    repaired, before = [], OUTSIDE
    for tag in tags:
        begins = tag.startswith("I-") and before[2:] != tag[2:]
        before = "B-" + tag[2:] if begins else tag
        repaired.append(before)
    return repaired


def mask_of(lengths: Tensor, num_steps: int) -> Tensor:
    return torch.arange(num_steps) < lengths.unsqueeze(-1)


class StructdistTagger(LibraryTagger):
    def log_likelihood(self, emissions: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
        mask = mask_of(lengths, emissions.shape[1])
        return self.crf(emissions, tags, mask, reduction="mean")

    def decode(self, crf: nn.Module, emissions: Tensor, lengths: Tensor) -> list[list[int]]:
        return crf.decode(emissions, mask_of(lengths, emissions.shape[1]))


class PytorchCrfTagger(StructdistTagger):
    """The same calls, of the other library's layer."""

    def make_crf(self, num_tags: int) -> nn.Module:
        import torchcrf

        return torchcrf.CRF(num_tags, batch_first=True)


class TorchStructTagger(LibraryTagger):
    def log_likelihood(self, emissions: Tensor, tags: Tensor, lengths: Tensor) -> Tensor:
        from torch_struct import LinearChain

        dist = self.distribution(self.crf, emissions, lengths)
        parts = LinearChain.to_parts(pad(tags, (1, 0)), len(self.tags), lengths + 1)
        return dist.log_prob(parts.type_as(emissions)).mean()

    def decode(self, crf: nn.Module, emissions: Tensor, lengths: Tensor) -> list[list[int]]:
        best = self.distribution(crf, emissions, lengths).argmax
        sequence, _ = torch_struct_class().struct.from_parts(best)
        rows = zip(sequence[:, 1:].tolist(), lengths.tolist(), strict=True)
        return [row[:size] for row, size in rows]

    def distribution(self, crf: nn.Module, emissions: Tensor, lengths: Tensor) -> object:
        """Over T + 1 nodes, the first of which is in state 0: edges [B, T, to, from]."""
        steps = torch.arange(emissions.shape[1])
        is_last = (steps == lengths.unsqueeze(-1) - 1).unsqueeze(-1)
        nodes = emissions + torch.where(is_last, crf.end_transitions, 0.0)
        later = nodes[:, 1:, :, None] + crf.transitions.mT
        first = (nodes[:, 0] + crf.start_transitions)[:, None, :, None]
        only_from_0 = torch.full((len(self.tags),), NEVER)
        only_from_0[0] = 0.0
        return torch_struct_class()(torch.cat([first + only_from_0, later], 1), lengths + 1)


LIBRARIES: dict[str, tuple[type[LibraryTagger], str]] = {
    "structdist": (StructdistTagger, "structdist"),
    "pytorch-crf": (PytorchCrfTagger, "torchcrf"),
    "torch-struct": (TorchStructTagger, "torch_struct"),
}


def installed() -> list[str]:
    """Those that can be imported here."""
    return [name for name, (_, module) in LIBRARIES.items() if find_spec(module) is not None]
