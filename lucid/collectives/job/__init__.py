"""The processes of a job as a whole: launcher, failures, departures, and the end of all."""
