"""What the models of an Hvpa are built from: base model, types of fields, form of cron expressions."""
