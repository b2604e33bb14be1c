"""Operations, one file per family, one decorated block per primitive."""
