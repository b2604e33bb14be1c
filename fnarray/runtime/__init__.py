"""Running compiled programs: dispatch, threads, devices."""
