"""What optimizers stand on: settings, state, the step of a formula on elements, and what captures ask of it."""
