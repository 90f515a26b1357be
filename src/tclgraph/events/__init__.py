"""What happened, in order: event streams, where they come from and how they are cut."""
