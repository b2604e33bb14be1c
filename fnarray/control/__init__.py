"""Operations that hold graphs: calls, branches, loops."""
