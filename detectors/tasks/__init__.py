"""Detection over the attempts and reviews of one task, whatever sessions they come from. As pure as the rest."""
