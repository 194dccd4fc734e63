"""What is started on this machine: programs with a certain end, web servers on loopback."""
