"""Values of expressions: exact integers and fractions, floating-point arrays, polynomials."""
