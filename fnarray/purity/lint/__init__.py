"""The linter: purity rules and tracing pitfalls over files, with nothing imported."""
