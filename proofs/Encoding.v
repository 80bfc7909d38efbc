(** * ⟨T, X⟩ as a sequence of tokens, and theorems without hypotheses on tokens

    [encoded parts] is the sequence of the entries of several matrices, row by row and one matrix
    after another, followed by zeros. [theorem_1]: for all n, d, d_v ≥ 1, one program computes T(X) on
    ⟨T, X⟩ for every T of this order and every X. No theorem below has a hypothesis about tokens. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Products Masks Universal Paper Heads Tiled.
From Locum Require Import Norm Activations Encoder Hierarchy Kinds.
Open Scope R_scope.

(** ** The layout of tokens *)

(** A matrix with entries of type E. [Part r c M] has r rows and c columns. *)
Inductive part (E : Type) := Part (r c : nat) (M : nat -> nat -> E).
Arguments Part {E}.

(** H matrices of one shape, one below the other. *)
Definition parts_of_heads {E} (H r c : nat) (M : nat -> nat -> nat -> E) : part E :=
  Part (H * r) c (fun i j => M (i / r)%nat (i mod r)%nat j).

(** The entry at position q, and [blank] after the last matrix. *)
Fixpoint entry_at {E} (blank : E) (parts : list (part E)) (q : nat) : E :=
  match parts with
  | [] => blank
  | Part r c M :: rest =>
      if Nat.ltb q (r * c) then M (q / c)%nat (q mod c)%nat else entry_at blank rest (q - r * c)
  end.

Fixpoint total_size {E} (parts : list (part E)) : nat :=
  match parts with [] => 0 | Part r c _ :: rest => r * c + total_size rest end.

Definition encoded (parts : list (part R)) (q : nat) : value := Num (entry_at 0 parts q).

(** The program p computes the r×c matrix M on the sequence: p has a value, which contains the entries
    of M in row-major order from position 0. *)
Definition computes (N : nat) (tokens : nat -> value) (p : sop) (r c : nat) (M : nat -> nat -> R) : Prop :=
  exists y, run N tokens p = Some y /\
    forall i j, (i < r)%nat -> (j < c)%nat -> y (i * c + j)%nat = Num (M i j).

(** ** T: the matrices of an attention, of H heads, and of a feed-forward *)
Record attention_module := AttentionModule { weight_A : nat -> nat -> R; weight_V : nat -> nat -> R }.
Definition apply_attention n d (T : attention_module) (x : nat -> nat -> R) : nat -> nat -> R :=
  attention n d x (weight_A T) (weight_V T).

(** ⟨T, X⟩ for an attention of order (n, d, d_v): X, A, V. *)
Definition attention_parts {E} n d dv (x a v : nat -> nat -> E) : list (part E) :=
  [Part n d x; Part d d a; Part d dv v].
Definition encode n d dv (T : attention_module) (x : nat -> nat -> R) : nat -> value :=
  encoded (attention_parts n d dv x (weight_A T) (weight_V T)).
(** The number of tokens that the program requires: enough for ⟨T, X⟩, for the n×n scores and for the
    n×d_v result. *)
Definition attention_size n d dv : nat := n * d + d * d + d * dv.
Definition attention_length n d dv : nat := Nat.max (attention_size n d dv) (Nat.max (n * n) (n * dv)).

(** Tiles require the positions of all groups of each product. *)
Definition tiled_length n d dv : nat :=
  Nat.max (attention_length n d dv) (Nat.max (tile_room n d d) (Nat.max (tile_room n d n)
    (Nat.max (tile_room n d dv) (tile_room n n dv)))).

(** ⟨T, X⟩ for H heads: X, the A of all heads, their V, and their W_O (d_v×p) if there is a projection. *)
Definition heads_parts {E} n d dv H (x : nat -> nat -> E) (a v : nat -> nat -> nat -> E) : list (part E) :=
  [Part n d x; parts_of_heads H d d a; parts_of_heads H d dv v].
Definition projected_parts {E} n d dv p H (x : nat -> nat -> E) (a v o : nat -> nat -> nat -> E) :=
  heads_parts n d dv H x a v ++ [parts_of_heads H dv p o].

Definition heads_length n d dv H : nat :=
  Nat.max (n * d + H * d * d + H * d * dv) (Nat.max (n * n) (n * (H * dv))).
Definition projected_size n d dv p H : nat := n * d + H * d * d + H * d * dv + H * dv * p.
Definition projected_length n d dv p H : nat :=
  Nat.max (projected_size n d dv p H) (Nat.max (n * n) (Nat.max (n * dv) (n * p))).

(** A feed-forward without and with biases and norms. *)
Definition feed_forward_parts {E} d d1 d2 (w1 w2 : nat -> nat -> E) : list (part E) :=
  [Part d d1 w1; Part d1 d2 w2].
Definition layer_parts {E} d d1 (w1 w2 : nat -> nat -> E) (b1 b2 g1 c1 g2 c2 : nat -> E) (eps : E) :=
  let row c f := Part 1 c (fun _ : nat => f) in
  [Part d d1 w1; row d1 b1; Part d1 d w2; row d b2; row d g1; row d c1; row d g2; row d c2;
   Part 1 1 (fun _ _ => eps)].

(** [size] and [attended] are the number of tokens of the attention, without and with its results. *)
Definition encoder_length n d d1 d2 size attended : nat :=
  Nat.max attended (Nat.max (size + d * d1 + d1 * d2) (Nat.max (n * d1) (n * d2))).
Definition layer_length n d d1 size attended : nat :=
  Nat.max attended (Nat.max (size + d * d1 + d1 + d1 * d + d + 4 * d + 1) (n * d1)).

(** The other kinds of attention: X, W_Q, W_K, V, then E and F, or ω. *)
Definition kind_parts {E} n d dv w (x wq wk v : nat -> nat -> E) : list (part E) :=
  [Part n d x; Part d w wq; Part d w wk; Part d dv v].

Definition kind_length n d dv w more : nat :=
  Nat.max (n * d + d * w + d * w + d * dv + more) (Nat.max (n * dv) (n * w)).

(** Linformer has E and F (k×n), Performer has ω (k×w); masked attention has the number of keys after V. *)
Definition linformer_parts {E} n d dv w k (x wq wk v e f : nat -> nat -> E) : list (part E) :=
  kind_parts n d dv w x wq wk v ++ [Part k n e; Part k n f].
Definition linformer_length n d dv w k : nat :=
  Nat.max (kind_length n d dv w (2 * (k * n))) (Nat.max (k * d) (Nat.max (k * w) (k * dv))).
Definition performer_parts {E} n d dv w k (x wq wk v omega : nat -> nat -> E) : list (part E) :=
  kind_parts n d dv w x wq wk v ++ [Part k w omega].
Definition linear_length n d dv w : nat := Nat.max (kind_length n d dv w 0) (n * n).
Definition performer_length n d dv w k : nat :=
  Nat.max (kind_length n d dv w (k * w)) (Nat.max (n * n) (n * k)).
Definition masked_parts {E} n d dv (count : E) (x a v : nat -> nat -> E) : list (part E) :=
  attention_parts n d dv x a v ++ [Part 1 1 (fun _ _ => count)].
Definition masked_length n d dv : nat := Nat.max (attention_length n d dv) (attention_size n d dv + 1).

(** ** The layout holds every matrix *)

Lemma entry_at_part {E} (blank : E) before r c M after i j : (i < r)%nat -> (j < c)%nat ->
  entry_at blank (before ++ Part r c M :: after) (total_size before + i * c + j) = M i j.
Proof.
  intros I J. induction before as [|[r' c' M'] before IH]; simpl.
  - rewrite (proj2 (Nat.ltb_lt _ _)) by nia. now destruct (divmod i j c J) as [-> ->].
  - rewrite (proj2 (Nat.ltb_ge _ _)) by lia.
    now replace (r' * c' + total_size before + i * c + j - r' * c')%nat
      with (total_size before + i * c + j)%nat by lia.
Qed.

Lemma total_size_app {E} (a b : list (part E)) : total_size (a ++ b) = (total_size a + total_size b)%nat.
Proof. induction a as [|[r c M] a IH]; simpl; lia. Qed.

Section Layout.
  Variables (N : nat) (parts : list (part R)).
  Hypothesis room : (total_size parts <= N)%nat.

  Lemma encoded_numbers : numbers N (encoded parts).
  Proof. exists (entry_at 0 parts). reflexivity. Qed.

  Lemma encoded_hold k r c M first :
    nth_error parts k = Some (Part r c M) -> first = total_size (firstn k parts) ->
    tokens_hold N (encoded parts) r c first M.
  Proof.
    intros E ->. destruct (nth_error_split _ _ E) as [before [after [S L]]].
    rewrite S in room |- *. rewrite firstn_app, L, Nat.sub_diag, <- L, firstn_all, app_nil_r.
    rewrite total_size_app in room. simpl in room. split; [lia|].
    intros i j I J. unfold encoded. now rewrite entry_at_part.
  Qed.

  Lemma encoded_hold_heads k H r c M first t :
    nth_error parts k = Some (parts_of_heads H r c M) -> first = total_size (firstn k parts) -> (t < H)%nat ->
    tokens_hold N (encoded parts) r c (first + t * (r * c)) (M t).
  Proof.
    intros E F T. destruct (encoded_hold k _ _ _ _ E F) as [L V]. split; [nia|].
    intros i j I J. replace (first + t * (r * c) + i * c + j)%nat with (first + (t * r + i) * c + j)%nat by nia.
    rewrite V by nia. now destruct (divmod t i r I) as [-> ->].
  Qed.
End Layout.

(** Sizes as sums of products. *)
Ltac sizes := cbv [total_size firstn app attention_parts heads_parts projected_parts parts_of_heads
  feed_forward_parts layer_parts kind_parts attention_size attention_length heads_length projected_size
  projected_length encoder_length
  layer_length kind_length tiled_length masked_parts linformer_parts performer_parts
  masked_length linear_length linformer_length performer_length] in *; lia.
Ltac part_number place := first
  [ apply encoded_hold with (k := place); [|reflexivity|]; sizes
  | intros; eapply encoded_hold_heads with (k := place); [|reflexivity| |assumption]; sizes ].
(** The part of ⟨T, X⟩ that contains the token at a position. *)
Ltac held := first
  [ apply encoded_numbers | part_number 0%nat | part_number 1%nat | part_number 2%nat | part_number 3%nat
  | part_number 4%nat | part_number 5%nat | part_number 6%nat | part_number 7%nat | part_number 8%nat
  | part_number 9%nat | part_number 10%nat | part_number 11%nat | part_number 12%nat | sizes ].

Ltac conjuncts := cbv zeta; repeat lazymatch goal with |- _ /\ _ => split end.

(** ** Theorem 1 *)

(** The programs of the recipes fetch and paper, with and without the row maximum, and of the recipe
    tiled. *)
Inductive recipe := Fetch | FetchPlain | PaperHeads (stable : bool) | Tiles.
Definition program_of (w : recipe) n d dv : sop :=
  match w with
  | Fetch => U n d dv
  | FetchPlain => plain_U n d dv
  | PaperHeads stable => paper_U stable n d dv
  | Tiles => tiled_U n d dv
  end.
Definition length_of (w : recipe) n d dv : nat :=
  match w with Tiles => tiled_length n d dv | _ => attention_length n d dv end.

Theorem every_recipe_simulates w n d dv N T x :
  (0 < n)%nat -> (0 < d)%nat -> (0 < dv)%nat -> (length_of w n d dv <= N)%nat ->
  computes N (encode n d dv T x) (program_of w n d dv) n dv (apply_attention n d T x).
Proof.
  intros N0 D0 V0 L. unfold encode. destruct w; simpl in L |- *.
  - apply U_simulates; held.
  - apply plain_U_simulates; held.
  - apply paper_U_simulates; held.
  - apply tiled_U_simulates; held.
Qed.

(** *** Theorem 1: for all n, d and d_v, one program computes T(X) for all T and X *)
Theorem theorem_1 n d dv : (0 < n)%nat -> (0 < d)%nat -> (0 < dv)%nat ->
  exists program, forall N, (attention_length n d dv <= N)%nat -> forall T x,
    computes N (encode n d dv T x) program n dv (apply_attention n d T x).
Proof.
  intros N0 D0 V0. exists (U n d dv). intros N L T x. now apply (every_recipe_simulates Fetch).
Qed.

(** Hypotheses about tokens can be satisfied. Every matrix is contained in some tokens. For every T and
    X of every order, some tokens satisfy the hypotheses of [U_simulates] about tokens. *)
Theorem every_matrix_is_held N r c first M : (first + r * c <= N)%nat ->
  exists tokens, holds N tokens closed (block r c first) M.
Proof.
  intros L. exists (encoded [Part 1 first (fun _ _ => 0); Part r c M]). apply closed_block; held.
Qed.
Theorem hypotheses_of_U_hold n d dv x a v :
  exists N tokens, (n * d <= N /\ n * n <= N /\ n * dv <= N)%nat /\ numbers N tokens /\
    tokens_hold N tokens n d 0 x /\ tokens_hold N tokens d d (n * d) a /\
    tokens_hold N tokens d dv (n * d + d * d) v.
Proof.
  exists (attention_length n d dv), (encoded (attention_parts n d dv x a v)). conjuncts; held.
Qed.

(** ** H heads: side by side, and through W_O *)
Theorem heads_U_computes n d dv H N x a v :
  (0 < n)%nat -> (0 < d)%nat -> (0 < dv)%nat -> (0 < H)%nat -> (heads_length n d dv H <= N)%nat ->
  computes N (encoded (heads_parts n d dv H x a v)) (heads_U n d dv H) n (H * dv)
    (fun i j => attention n d x (a (j / dv)%nat) (v (j / dv)%nat) i (j mod dv)).
Proof.
  intros N0 D0 V0 H0 L. assert (n * dv <= n * (H * dv))%nat by nia. apply heads_U_simulates; held.
Qed.

Theorem projected_U_computes n d dv p H N x a v o :
  (0 < n)%nat -> (0 < d)%nat -> (0 < dv)%nat -> (0 < p)%nat -> (0 < H)%nat ->
  (projected_length n d dv p H <= N)%nat ->
  computes N (encoded (projected_parts n d dv p H x a v o)) (projected_U n d dv p H) n p
    (fun i j => sum H (fun t => dot dv (attention n d x (a t) (v t)) (o t) i j)).
Proof. intros N0 D0 V0 P0 H0 L. apply projected_U_simulates; held. Qed.

(** ** Encoders: the paper's, with one head and with H heads *)
Theorem encoder_computes n d d1 d2 N T x w1 w2 :
  (0 < n)%nat -> (0 < d)%nat -> (0 < d1)%nat -> (0 < d2)%nat ->
  (encoder_length n d d1 d2 (attention_size n d d) (attention_length n d d) <= N)%nat ->
  computes N (encoded (attention_parts n d d x (weight_A T) (weight_V T) ++ feed_forward_parts d d1 d2 w1 w2))
    (encoder n d d1 d2) n d2 (paper_encoder d d1 w1 w2 (apply_attention n d T) x).
Proof. intros N0 D0 P1 P2 L. apply encoder_simulates; held. Qed.

Theorem encoder_of_heads_computes n d dv d1 d2 H N x a v o w1 w2 :
  (0 < n)%nat -> (0 < d)%nat -> (0 < dv)%nat -> (0 < d1)%nat -> (0 < d2)%nat -> (0 < H)%nat ->
  (encoder_length n d d1 d2 (projected_size n d dv d H) (projected_length n d dv d H) <= N)%nat ->
  computes N (encoded (projected_parts n d dv d H x a v o ++ feed_forward_parts d d1 d2 w1 w2))
    (encoder_of_heads n d dv d1 d2 H) n d2
    (paper_encoder d d1 w1 w2 (heads_attention n d dv H a v o) x).
Proof. intros N0 D0 V0 P1 P2 H0 L. apply encoder_of_heads_simulates; held. Qed.

(** *** Corollary H heads: one program for every encoder of H heads *)
Theorem corollary_H_heads n d dv d1 d2 H :
  (0 < n)%nat -> (0 < d)%nat -> (0 < dv)%nat -> (0 < d1)%nat -> (0 < d2)%nat -> (0 < H)%nat ->
  exists program, forall N, (encoder_length n d d1 d2 (projected_size n d dv d H) (projected_length n d dv d H) <= N)%nat ->
    forall x a v o w1 w2,
    computes N (encoded (projected_parts n d dv d H x a v o ++ feed_forward_parts d d1 d2 w1 w2))
      program n d2 (paper_encoder d d1 w1 w2 (heads_attention n d dv H a v o) x).
Proof.
  intros N0 D0 V0 P1 P2 H0. exists (encoder_of_heads n d dv d1 d2 H). intros.
  now apply encoder_of_heads_computes.
Qed.

(** Layers with biases and norms, with one head or with H heads. *)
Theorem layer_of_one_head_computes where_ act n d d1 N T x w1 w2 b1 b2 g1 c1 g2 c2 eps :
  sound act -> 0 < eps -> (0 < n)%nat -> (0 < d)%nat -> (0 < d1)%nat ->
  (layer_length n d d1 (attention_size n d d) (attention_length n d d) <= N)%nat ->
  computes N (encoded (attention_parts n d d x (weight_A T) (weight_V T) ++
                       layer_parts d d1 w1 w2 b1 b2 g1 c1 g2 c2 eps))
    (layer_of_one_head where_ act n d d1) n d
    (layer where_ act d d1 eps w1 w2 b1 b2 g1 c1 g2 c2 (apply_attention n d T) x).
Proof.
  intros S E N0 D0 P1 L.
  apply layer_of_one_head_simulates; try assumption; unfold tokens_hold_layer; conjuncts; held.
Qed.

Theorem layer_of_heads_computes where_ act n d dv d1 H N x a v o w1 w2 b1 b2 g1 c1 g2 c2 eps :
  sound act -> 0 < eps -> (0 < n)%nat -> (0 < d)%nat -> (0 < dv)%nat -> (0 < d1)%nat -> (0 < H)%nat ->
  (layer_length n d d1 (projected_size n d dv d H) (projected_length n d dv d H) <= N)%nat ->
  computes N (encoded (projected_parts n d dv d H x a v o ++
                       layer_parts d d1 w1 w2 b1 b2 g1 c1 g2 c2 eps))
    (layer_of_heads where_ act n d dv d1 H) n d
    (layer where_ act d d1 eps w1 w2 b1 b2 g1 c1 g2 c2 (heads_attention n d dv H a v o) x).
Proof.
  intros S E N0 D0 V0 P1 H0 L.
  apply layer_of_heads_simulates; try assumption; unfold tokens_hold_layer; conjuncts; held.
Qed.

(** ** The hierarchy: one program for every T of at most its order; causal attention *)
Theorem masked_U_computes n d dv N m e f T x :
  (0 < m <= n)%nat -> (0 < e <= d)%nat -> (0 < f <= dv)%nat -> (masked_length n d dv <= N)%nat ->
  exists y, run N (encoded (masked_parts n d dv (INR m) (padded m e x) (padded e e (weight_A T))
                              (padded e f (weight_V T)))) (masked_U n d dv) = Some y /\
    forall i j, (i < m)%nat -> (j < f)%nat -> y (i * dv + j)%nat = Num (apply_attention m e T x i j).
Proof. intros M0 E0 F0 L. apply hierarchy_simulates; held. Qed.

Theorem causal_U_computes n d dv N T x :
  (0 < n)%nat -> (0 < d)%nat -> (0 < dv)%nat -> (attention_length n d dv <= N)%nat ->
  computes N (encode n d dv T x) (causal_U n d dv) n dv
    (masked_attention (fun i l => Nat.leb l i) n d x (weight_A T) (weight_V T)).
Proof. intros N0 D0 V0 L. unfold encode. apply causal_U_simulates; held. Qed.

(** ** Linear attention, Linformer and Performer *)
Theorem linear_U_computes n d dv w N x wq wk v :
  (0 < n)%nat -> (0 < d)%nat -> (0 < dv)%nat -> (0 < w)%nat -> (linear_length n d dv w <= N)%nat ->
  computes N (encoded (kind_parts n d dv w x wq wk v)) (linear_U n d dv w) n dv
    (dot n (dot w (dot d x wq) (fun t l => dot d x wk l t)) (dot d x v)).
Proof. intros N0 D0 V0 W0 L. apply linear_U_simulates; held. Qed.

Theorem elu_U_computes n d dv w N x wq wk v :
  (0 < n)%nat -> (0 < d)%nat -> (0 < dv)%nat -> (0 < w)%nat -> (linear_length n d dv w <= N)%nat ->
  computes N (encoded (kind_parts n d dv w x wq wk v)) (elu_U n d dv w) n dv
    (featured n w (fun i t => activation EluPlusOne (dot d x wq i t))
       (fun i t => activation EluPlusOne (dot d x wk i t)) (dot d x v)).
Proof. intros N0 D0 V0 W0 L. apply elu_U_simulates; held. Qed.

Theorem linformer_U_computes n d dv w k N x wq wk v e f :
  (0 < n)%nat -> (0 < d)%nat -> (0 < dv)%nat -> (0 < w)%nat -> (0 < k)%nat ->
  (linformer_length n d dv w k <= N)%nat ->
  computes N (encoded (linformer_parts n d dv w k x wq wk v e f)) (linformer_U n d dv w k) n dv
    (let s := dot w (dot d x wq) (fun t l => dot d (dot n e x) wk l t) in
     dot k (fun i l => exp (s i l) / sum k (fun t => exp (s i t))) (dot d (dot n f x) v)).
Proof. intros N0 D0 V0 W0 K0 L. apply linformer_U_simulates; held. Qed.

Theorem performer_U_computes half root n d dv w k N x wq wk v omega :
  is_number (value_of half) = true -> is_number (value_of root) = true -> 0 < real root ->
  (0 < n)%nat -> (0 < d)%nat -> (0 < dv)%nat -> (0 < w)%nat -> (0 < k)%nat ->
  (performer_length n d dv w k <= N)%nat ->
  computes N (encoded (performer_parts n d dv w k x wq wk v omega)) (performer_U half root n d dv w k) n dv
    (let phi := performer_feature (real half) (real root) w omega in
     featured n k (phi (dot d x wq)) (phi (dot d x wk)) (dot d x v)).
Proof.
  intros NH NR R0 N0 D0 V0 W0 K0 L.
  apply performer_U_simulates; try assumption; held.
Qed.
