"""What the processes of jobs run, which tests of this folder start."""
