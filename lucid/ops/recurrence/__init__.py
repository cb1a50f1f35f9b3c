"""Recurrence: the steps of an LSTM, a GRU and an RNN, and whole sequences of them.

On the CPU a sequence is one op, `lstm`, `gru` or `rnn`, of all steps of a layer in one direction. On CUDA, of half types,
and where it is differentiated twice, it is made of the steps in `lucid.ops.recurrence.steps`.
"""
