"""What attacks and failures do not do."""
