"""Settings that all tests share.

One thread: the tensors here are tiny, and idle threads cost more than they bring. Hypothesis
searches the same examples on each run.
"""

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=30)
settings.load_profile("fixed")
