"""How what a program does grows with how much of it there is: acts of a size, and the exponents of their time."""
