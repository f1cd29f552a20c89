"""Pages of grading: one document or a result list, and train and compare."""
