"""The part of `lucid.distributed` below `nn`: groups of processes, and collectives of tensors.

`work`, `group`, `meeting` and `world` are how processes come together, `operations` (where the rules of all collectives
stand), `spreading`, `pairs` and `objects` what they call; `engines` take arrays from process to process, and `job` sees
to it that a job in which one process fails ends, with an error that says why.
"""
