"""Recurrence: the steps of an LSTM, a GRU and an RNN, and whole sequences of them.

On the CPU all steps of a layer in one direction are one op, `lstm`, `gru`, `rnn_tanh` or `rnn_relu`, with one node. On
CUDA, of half types, and where it is differentiated twice, a sequence is made of the steps in
`lucid.ops.recurrence.steps`.
"""
