"""Model: values, requests, results and rows; a field is declared here, with its limits."""
