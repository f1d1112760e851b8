"""What an application uses: transactional emit and an idempotent consumer."""
