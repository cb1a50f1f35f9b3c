# Written by `python -m tests.compat.stubs`.
from lucid.compat.helpers import _ntuple as _ntuple
from lucid.compat.helpers import _pair as _pair
from lucid.compat.helpers import _quadruple as _quadruple
from lucid.compat.helpers import _single as _single
from lucid.compat.helpers import _triple as _triple
from lucid.compat.helpers import consume_prefix_in_state_dict_if_present as consume_prefix_in_state_dict_if_present

__all__ = ['_ntuple', '_pair', '_quadruple', '_single', '_triple', 'consume_prefix_in_state_dict_if_present']
