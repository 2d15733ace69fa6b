"""Building blocks of the Hvpa models: the base model, field types, and the form of cron expressions."""
