"""What the processes of jobs run: tables of checks, each called in all processes alike."""
