"""Claims under hypotheses as derivations slip: each needs numbers that satisfy all hypotheses.

`FALSE` and `TRUE` were written before anything was tried on them. Each entry is a claim, its
hypotheses separated by “;”, and shapes. `TRUE` is the control: no numbers refute it.
"""

from __future__ import annotations

SHAPES = ", ".join(
    [f"{name}: n n" for name in "ABCDPQMSTWGK"]
    + [f"{name}: n d" for name in "XYZ"]
    + ["U: n r", "V: n r", "g: function"]
)

FALSE: tuple[tuple[str, str, str], ...] = (
    # orthonormal columns, and more general inner products
    ("U Uᵀ = I", "Uᵀ U = I", ""),
    ("U Uᵀ X = X", "Uᵀ U = I", ""),
    ("Wᵀ W = I", "Wᵀ C W = I", ""),
    ("W Wᵀ = I", "Wᵀ C W = I; C = Cᵀ", ""),
    ("Uᵀ U = I", "Uᵀ C U = I", ""),
    ("U Uᵀ = C⁻¹", "Uᵀ C U = I", ""),
    ("U Uᵀ C = I", "Uᵀ C U = I", ""),
    ("C U Uᵀ = U Uᵀ C", "Uᵀ C U = I; C = Cᵀ", ""),
    ("Uᵀ V = I", "Uᵀ U = I; Vᵀ V = I", ""),
    ("U Uᵀ = V Vᵀ", "Uᵀ U = I; Vᵀ V = I; Uᵀ V = Vᵀ U", ""),
    ("U Uᵀ V = V", "Uᵀ U = I; Vᵀ V = I", ""),
    ("Qᵀ A Q = A", "Qᵀ Q = I; A = Aᵀ", ""),
    ("Q = I", "Qᵀ Q = I; Q Q = I", ""),
    ("Q = Qᵀ", "Qᵀ Q = I; Q 𝟏_{n} = 𝟏_{n}", ""),
    ("Q D Qᵀ = D", "Qᵀ Q = I; D = Dᵀ; D D = I", ""),
    # projections, nilpotents and involutions
    ("P = Pᵀ", "P P = P", ""),
    ("P + Q = (P + Q)(P + Q)", "P P = P; Q Q = Q", ""),
    ("P + Q = (P + Q)(P + Q)", "P P = P; Q Q = Q; P Q = 0", ""),
    ("P Q = Q P", "P P = P; Q Q = Q; P = Pᵀ; Q = Qᵀ", ""),
    ("P Q P Q = P Q", "P P = P; Q Q = Q; P = Pᵀ; Q = Qᵀ", ""),
    ("P A P = P A", "P P = P; A P = P A P", ""),
    ("(I - P) A = A", "P P = P; P A P = 0", ""),
    ("A B = 0", "A A = 0; B B = 0; A B = B A", ""),
    ("(A + B)(A + B) = 0", "A A = 0; B B = 0", ""),
    ("A = 0", "A A A = 0; A A = 0", ""),
    ("tr(A B) = 0", "A A = 0; B B = 0", ""),
    ("A = I", "A A = I; tr(A) = n - 2", ""),
    ("A B = B A", "A A = I; B B = I", ""),
    ("A = A A", "A A A = A", ""),
    ("A A = I", "A A A = A", ""),
    # commuting, and products that agree
    ("A C = C A", "A B = B A; B C = C B", ""),
    ("A B A = A A B", "A B A = B A B", ""),
    ("B = C", "A B = A C", ""),
    ("B A = 0", "A B = 0", ""),
    ("A Y = X", "X = A Y + B Y; B B = B", ""),
    ("X = Y", "Xᵀ X = Yᵀ Y", ""),
    ("X = 0", "Xᵀ Y = 0; Yᵀ X = 0", ""),
    ("A B = I", "A B A = A; B A B = B", ""),
    ("A B = (A B)ᵀ", "A B A = A; B A B = B", ""),
    ("B A = (B A)ᵀ", "A B A = A; B A B = B; A B = (A B)ᵀ", ""),
    ("A X = X A", "A X = X A + X", "A: n n, X: n n"),
    # definitions of symbols by others
    ("M Mᵀ = K", "M = A B; K = B Bᵀ; A Aᵀ = I", ""),
    ("Y W = X", "Y = X Wᵀ; W Wᵀ = I", "X: n d, W: k d, Y: n k"),
    ("A = S B S⁻¹ + T", "A = S B S⁻¹; T = S - B", ""),
    ("tr(M) = tr(K)", "M = X Xᵀ; K = Xᵀ X X Xᵀ", "M: n n, X: n n, K: n n"),
    ("C = Bᵀ A", "C = Aᵀ B; A = X Y; B = Y X", "A: n n, B: n n, C: n n, X: n n, Y: n n"),
    ("Z = X", "Z = P X; P P = P; P = Pᵀ; P 𝟏_{n} = 𝟏_{n}", ""),
    # rows that sum to one, masks, means
    ("𝟏_{n}ᵀ A = 𝟏_{n}ᵀ", "A 𝟏_{n} = 𝟏_{n}", ""),
    ("A 𝟏_{n} 𝟏_{n}ᵀ = 𝟏_{n} 𝟏_{n}ᵀ A", "A 𝟏_{n} = 𝟏_{n}; A = A A", ""),
    ("A = Aᵀ", "A 𝟏_{n} = 𝟏_{n}; 𝟏_{n}ᵀ A = 𝟏_{n}ᵀ", ""),
    ("A X = X", "A 𝟏_{n} = 𝟏_{n}; 𝟏_{n}ᵀ X = 0", ""),
    ("A B = B A", "A 𝟏_{n} = 𝟏_{n}; B 𝟏_{n} = 𝟏_{n}; A = Aᵀ; B = Bᵀ", ""),
    # functions in hypotheses
    ("g(X Y) = X Y", "g(X) = X", "X: n n, Y: n n, g: function"),
    ("g(Y) = Y", "g(X) = X", ""),
    ("g(X + Y) = X + Y", "g(X) = X; g(Y) = Y", ""),
    ("X = Y", "g(X) = g(Y)", ""),
    ("relu(X + Y) = X + Y", "relu(X) = X", ""),
    ("X = Y", "relu(X) = relu(Y)", ""),
    ("X Y = 0", "relu(X) = 0; relu(Y) = 0", "X: n n, Y: n n"),
    # inverses, determinants of small systems, positive definite ones
    ("(A + B)⁻¹ = A⁻¹ + B⁻¹", "A B = B A", ""),
    ("A⁻¹ B = B", "A B = B A; B B = B", ""),
    ("S = I", "S A S⁻¹ = A; S = Sᵀ", ""),
)

TRUE: tuple[tuple[str, str, str], ...] = (
    ("U Uᵀ U = U", "Uᵀ U = I", ""),
    ("W Wᵀ C = I", "Wᵀ C W = I", ""),
    ("C U Uᵀ C U = C U", "Uᵀ C U = I", ""),
    ("(U Uᵀ)(U Uᵀ) = U Uᵀ", "Uᵀ U = I", ""),
    ("(I - P)(I - P) = I - P", "P P = P", ""),
    ("tr((I - P) A P) = 0", "P P = P", ""),
    ("(P + Q)(P + Q) = P + Q", "P P = P; Q Q = Q; P Q = 0; Q P = 0", ""),
    ("(A + B)(A + B)(A + B) = 0", "A A = 0; B B = 0; A B = B A", ""),
    ("(A B)(A B) = A B", "A B A = A", ""),
    ("A B C = C A B", "A C = C A; B C = C B", ""),
    ("A A A A = A A", "A A A = A", ""),
    ("A B 𝟏_{n} = 𝟏_{n}", "A 𝟏_{n} = 𝟏_{n}; B 𝟏_{n} = 𝟏_{n}", ""),
    ("A (X + 𝟏_{n} b) = A X + 𝟏_{n} b", "A 𝟏_{n} = 𝟏_{n}", "A: n n, X: n d, b: 1 d"),
    ("P g(X) = g(P X)", "Pᵀ P = I; P 𝟏_{n} = 𝟏_{n}; P ⊙ P = P", ""),
    ("g(g(X)) = X", "g(X) = X", ""),
    ("relu(relu(X) + Y) = X + Y", "relu(X) = X; relu(X + Y) = X + Y", ""),
    ("A⁻¹ B = B A⁻¹", "A B = B A", ""),
    ("M = Aᵀ Bᵀ", "M = (B A)ᵀ", ""),
    ("Q A Q Q A Q = Q A A Q", "Qᵀ Q = I; Q Q = I", ""),
    ("Xᵀ A X = 0", "A X = X; Xᵀ X = 0", ""),
)
