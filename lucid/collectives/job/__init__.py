"""The processes of a job as a whole: who started them, who has failed or left, and how all end."""
