(** * Matrices as views of a sequence (Proposition 1D), and their products by fetching heads

    [holds m M] means that the view m contains the matrix M, and that its s-op has a value at every
    position. The theorems are [matmul_correct] (Lemma matmul with 2k fetching heads) and
    [transposed_correct] (Lemma transposition, as a view), for all shapes. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning.
Open Scope R_scope.

(** ** Positions are numbers or s-ops. Sums with 0, and products with 0 or 1, have no node *)
Inductive place := Int (n : nat) | At (p : sop).

Definition sop_of (x : place) : sop :=
  match x with Int n => Constant (Integer (Z.of_nat n)) | At p => p end.

Definition plus (a b : place) : place :=
  match a, b with
  | Int 0, _ => b
  | _, Int 0 => a
  | Int m, Int n => Int (m + n)
  | _, _ => At (Binary Add (sop_of a) (sop_of b))
  end.

Definition times (a b : place) : place :=
  match a, b with
  | Int 1, _ => b
  | _, Int 1 => a
  | Int 0, _ => Int 0
  | _, Int 0 => Int 0
  | Int m, Int n => Int (m * n)
  | _, _ => At (Binary Multiply (sop_of a) (sop_of b))
  end.

(** ** Views *)
Record matrix := View {
  source : sop; rows : nat; columns : nat;
  offset : place; row_stride : nat; column_stride : nat }.

Definition row_major (s : sop) (r c : nat) : matrix := View s r c (Int 0) c 1.

Definition transposed (m : matrix) : matrix :=
  View (source m) (columns m) (rows m) (offset m) (column_stride m) (row_stride m).

(** The position of entry (i, j), if the first entry is at [o]. *)
Definition address (m : matrix) (o i j : nat) : nat :=
  (o + i * row_stride m + j * column_stride m)%nat.

Definition position (m : matrix) (i j : place) : place :=
  plus (plus (offset m) (times i (Int (row_stride m)))) (times j (Int (column_stride m))).

(** Entry (i, j), where i and j may differ between positions: one head. *)
Definition entry (m : matrix) (i j : place) : sop :=
  fetch (sop_of (position m i j)) (source m).

(** Row and column of each position of an r×c matrix, and 0 after its end. *)
Definition integer (n : nat) : sop := Constant (Integer (Z.of_nat n)).
Definition inside (r c : nat) : sop := Binary (Compare Lt) Indices (integer (r * c)).
Definition row_of (r c : nat) : sop :=
  IfElse (inside r c) (Binary FloorDivide Indices (integer c)) (integer 0).
Definition column_of (r c : nat) : sop :=
  IfElse (inside r c) (Binary Modulo Indices (integer c)) (integer 0).

(** The product with 2k heads: recipe fetch. [h] is the height of its sum. *)
Definition product_term (t : family) (a b : matrix) : sop :=
  Binary Multiply
    (entry a (At (row_of (rows a) (columns b))) (At (Head t)))
    (entry b (At (Head t)) (At (column_of (rows a) (columns b)))).

Definition matmul (h : nat) (a b : matrix) : matrix :=
  let t := Family h 0 (columns a) in
  row_major (SumOver (product_term t a b) [t]) (rows a) (columns b).

(** ** Meaning *)
Section Matrices.
  Variable N : nat.
  Variable tokens : nat -> value.

  Notation gives := (gives N tokens).
  Notation index := (index N tokens).

  (** A program can be a part of a sum over heads, and the context restricts these heads. Inner sums of
      height [h] do not change the context if [keeps h] holds. *)
  Variable context : environment -> Prop.
  Definition keeps (h : nat) :=
    forall e f t, height f = h -> context e -> context (bind e f t).

  (** The view contains the matrix M: its s-op has a value at every position, and the entries of M at
      the positions of the view. *)
  Definition holds (m : matrix) (M : nat -> nat -> R) :=
    (exists e, context e) /\ exists f o,
      (forall e, context e -> gives e (source m) f) /\
      (forall e, context e -> index e (sop_of (offset m)) (fun _ => o)) /\
      forall i j, (i < rows m)%nat -> (j < columns m)%nat ->
        (address m o i j < N)%nat /\ f (address m o i j) = M i j.

  Lemma index_int e n : index e (sop_of (Int n)) (fun _ => n).
  Proof. apply index_constant. Qed.

  Lemma index_same e p f g :
    (forall q, (q < N)%nat -> f q = g q) -> index e p f -> index e p g.
  Proof. intros H. apply gives_ext. intros q Q. now rewrite H. Qed.

  Lemma index_int_eq e n f : index e (sop_of (Int n)) f -> forall q, (q < N)%nat -> f q = n.
  Proof.
    intros [g [E G]] q Q. specialize (G q Q). cbn in E. injection E as <-.
    injection G as G. rewrite <- INR_IZR_INZ in G. now apply INR_eq in G.
  Qed.

  Lemma index_plus e a b f g :
    index e (sop_of a) f -> index e (sop_of b) g ->
    index e (sop_of (plus a b)) (fun q => f q + g q)%nat.
  Proof.
    intros A B. unfold plus.
    destruct a as [[|m]|p].
    - apply (index_same e _ g); [|exact B].
      intros q Q. now rewrite (index_int_eq _ _ _ A q Q).
    - destruct b as [[|n]|p'].
      + apply (index_same e _ f); [|exact A].
        intros q Q. rewrite (index_int_eq _ _ _ B q Q). lia.
      + apply (index_same e _ (fun _ => S m + S n)%nat); [|apply index_int].
        intros q Q. now rewrite (index_int_eq _ _ _ A q Q), (index_int_eq _ _ _ B q Q).
      + now apply index_add.
    - destruct b as [[|n]|p'].
      + apply (index_same e _ f); [|exact A].
        intros q Q. rewrite (index_int_eq _ _ _ B q Q). lia.
      + now apply index_add.
      + now apply index_add.
  Qed.

  Lemma index_times e a b f g :
    index e (sop_of a) f -> index e (sop_of b) g ->
    index e (sop_of (times a b)) (fun q => f q * g q)%nat.
  Proof.
    intros A B. unfold times.
    destruct a as [[|[|m]]|p]; destruct b as [[|[|n]]|p'];
      first
        [ now apply index_multiply
        | apply (index_same e _ g); [intros q Q; rewrite (index_int_eq _ _ _ A q Q); lia|exact B]
        | apply (index_same e _ f); [intros q Q; rewrite (index_int_eq _ _ _ B q Q); lia|exact A]
        | eapply index_same; [|apply index_int]; intros q Q; simpl;
          rewrite ?(index_int_eq _ _ _ A q Q), ?(index_int_eq _ _ _ B q Q); lia ].
  Qed.

  (** A result is in row-major order from position 0. *)
  Lemma holds_compact s r c M :
    holds (row_major s r c) M <->
    (exists e, context e) /\ exists f, (forall e, context e -> gives e s f) /\
      forall i j, (i < r)%nat -> (j < c)%nat ->
        (i * c + j < N)%nat /\ f (i * c + j)%nat = M i j.
  Proof.
    split.
    - intros [[e0 E0] [f [o [F [O H]]]]]. split; [now exists e0|]. exists f; split; [exact F|].
      intros i j I J. destruct (H i j I J) as [L V]. unfold address in L, V; simpl in L, V.
      assert (o = 0%nat) by (apply (index_int_eq e0 0 _ (O e0 E0) 0%nat); lia). subst o.
      replace (0 + i * c + j * 1)%nat with (i * c + j)%nat in * by lia. auto.
    - intros [E [f [F H]]]. split; [exact E|]. exists f, 0%nat.
      split; [exact F|]. split; [intros; apply index_int|].
      intros i j I J. simpl in I, J. unfold address; simpl.
      replace (i * c + j * 1)%nat with (i * c + j)%nat by lia. now apply H.
  Qed.

  Lemma holds_ext m M K :
    (forall i j, (i < rows m)%nat -> (j < columns m)%nat -> M i j = K i j) -> holds m M -> holds m K.
  Proof.
    intros E [C [f [o [F [O H]]]]]. split; [exact C|]. exists f, o. split; [exact F|split; [exact O|]].
    intros i j I J. destruct (H i j I J) as [L V]. split; [exact L|]. rewrite V. now apply E.
  Qed.

  Lemma index_position e m i j o f g :
    index e (sop_of (offset m)) (fun _ => o) ->
    index e (sop_of i) f -> index e (sop_of j) g ->
    index e (sop_of (position m i j)) (fun q => address m o (f q) (g q)).
  Proof.
    intros O I J. unfold position, address.
    apply (index_plus e _ _ (fun q => o + f q * row_stride m)%nat (fun q => g q * column_stride m)%nat).
    - apply (index_plus e _ _ (fun _ => o) (fun q => f q * row_stride m)%nat); [exact O|].
      apply (index_times e _ _ f (fun _ => row_stride m)); [exact I|apply index_int].
    - apply (index_times e _ _ g (fun _ => column_stride m)); [exact J|apply index_int].
  Qed.

  Lemma gives_entry e m i j o f g v :
    index e (sop_of (offset m)) (fun _ => o) ->
    index e (sop_of i) f -> index e (sop_of j) g -> gives e (source m) v ->
    (forall q, (q < N)%nat -> (address m o (f q) (g q) < N)%nat) ->
    gives e (entry m i j) (fun q => v (address m o (f q) (g q))).
  Proof.
    intros O I J V H. unfold entry.
    apply (gives_fetch N tokens e _ _ (fun q => address m o (f q) (g q))); auto.
    now apply index_position.
  Qed.

  Lemma gives_entry_or e m i j o f g v :
    index e (sop_of (offset m)) (fun _ => o) ->
    index e (sop_of i) f -> index e (sop_of j) g -> gives e (source m) v ->
    gives e (entry m i j)
      (fun q => if Nat.ltb (address m o (f q) (g q)) N then v (address m o (f q) (g q)) else 0).
  Proof.
    intros O I J V. unfold entry.
    apply (gives_fetch_or N tokens e _ _ (fun q => address m o (f q) (g q))); auto.
    now apply index_position.
  Qed.

  Lemma says_inside e r c :
    says N tokens e (inside r c) (fun q => Nat.ltb q (r * c)).
  Proof. apply says_less; [apply gives_indices|apply index_constant]. Qed.

  Lemma index_row e r c : (0 < c)%nat ->
    index e (row_of r c) (fun q => if Nat.ltb q (r * c) then q / c else 0)%nat.
  Proof.
    intros C. apply index_if; [apply says_inside| |apply (index_constant N tokens e 0)].
    apply index_floor_divide; [apply gives_indices|apply index_constant|auto].
  Qed.

  Lemma index_column e r c : (0 < c)%nat ->
    index e (column_of r c) (fun q => if Nat.ltb q (r * c) then q mod c else 0)%nat.
  Proof.
    intros C. apply index_if; [apply says_inside| |apply (index_constant N tokens e 0)].
    apply index_modulo; [apply gives_indices|apply index_constant|auto].
  Qed.

  Lemma row_below r c q : (0 < r)%nat -> (0 < c)%nat ->
    ((if Nat.ltb q (r * c) then q / c else 0) < r)%nat.
  Proof.
    intros R0 C0. destruct (Nat.ltb_spec q (r * c)); [|lia].
    apply Nat.div_lt_upper_bound; lia.
  Qed.

  Lemma column_below r c q : (0 < c)%nat ->
    ((if Nat.ltb q (r * c) then q mod c else 0) < c)%nat.
  Proof.
    intros C0. destruct (Nat.ltb_spec q (r * c)); [|lia]. apply Nat.mod_upper_bound; lia.
  Qed.

  Lemma divmod i j c : (j < c)%nat -> ((i * c + j) / c = i /\ (i * c + j) mod c = j)%nat.
  Proof.
    intros H. split.
    - rewrite Nat.div_add_l by lia. rewrite Nat.div_small by lia. lia.
    - rewrite Nat.add_comm, Nat.mod_add by lia. apply Nat.mod_small; lia.
  Qed.

  Lemma sum_ext n f g : (forall k, (k < n)%nat -> f k = g k) -> sum n f = sum n g.
  Proof. induction n; simpl; intros H; [reflexivity|]. rewrite IHn, H; auto with arith. Qed.

  Definition dot k (A B : nat -> nat -> R) i j := sum k (fun t => A i t * B t j).

  Lemma index_bound e f t : index (bind e f t) (Head f) (fun _ => t).
  Proof.
    eapply index_same; [|apply index_head]. intros q Q. unfold bind. now rewrite !Nat.eqb_refl.
  Qed.

  (** Lemma matmul, for all shapes. *)
  Theorem matmul_correct h a b A B :
    (0 < rows a)%nat -> (0 < columns b)%nat -> columns a = rows b ->
    (rows a * columns b <= N)%nat -> keeps h ->
    holds a A -> holds b B ->
    holds (matmul h a b) (dot (columns a) A B).
  Proof.
    intros R0 C0 K RC KEEP [C [f [o [F [O FA]]]]] [_ [g [o' [G [O' GB]]]]].
    set (i := fun q => if Nat.ltb q (rows a * columns b) then (q / columns b)%nat else 0%nat).
    set (j := fun q => if Nat.ltb q (rows a * columns b) then (q mod columns b)%nat else 0%nat).
    apply holds_compact. split; [exact C|].
    exists (fun q => sum (columns a) (fun t => f (address a o (i q) t) * g (address b o' t (j q)))).
    split.
    - intros e E.
      apply (gives_sum N tokens e _ (Family h 0 (columns a))
               (fun t q => f (address a o (i q) t) * g (address b o' t (j q)))).
      simpl. intros t T0.
      assert (E' : context (bind e (Family h 0 (columns a)) t)) by now apply KEEP.
      apply gives_multiply.
      + apply (gives_entry _ a _ _ o i (fun _ => t)); auto.
        * now apply index_row.
        * apply index_bound.
        * intros q Q. apply FA; [now apply row_below|exact T0].
      + apply (gives_entry _ b _ _ o' (fun _ => t) j); auto.
        * apply index_bound.
        * now apply index_column.
        * intros q Q. apply GB; [lia|now apply column_below].
    - intros p q P Q.
      assert (L : (p * columns b + q < rows a * columns b)%nat) by nia.
      split; [lia|]. unfold dot. apply sum_ext. intros t T0.
      unfold i, j. rewrite (proj2 (Nat.ltb_lt _ _) L).
      destruct (divmod p q (columns b) Q) as [-> ->].
      now rewrite (proj2 (FA p t P T0)), (proj2 (GB t q ltac:(lia) Q)).
  Qed.

  (** The same theorem, for shapes with other names. *)
  Corollary product_correct h a b A B r k c :
    rows a = r -> columns a = k -> rows b = k -> columns b = c ->
    (0 < r)%nat -> (0 < c)%nat -> (r * c <= N)%nat -> keeps h ->
    holds a A -> holds b B ->
    holds (row_major (source (matmul h a b)) r c) (dot k A B).
  Proof.
    intros <- <- K <- R0 C0 RC KEEP HA HB. change (row_major _ _ _) with (matmul h a b).
    now apply matmul_correct.
  Qed.

  (** Lemma transposition, as a view. *)
  Theorem transposed_correct m M : holds m M -> holds (transposed m) (fun i j => M j i).
  Proof.
    intros [C [f [o [F [O H]]]]]. split; [exact C|]. exists f, o.
    split; [exact F|split; [exact O|]]. intros i j I J. simpl in I, J.
    replace (address (transposed m) o i j) with (address m o j i) by (unfold address; simpl; lia).
    now apply H.
  Qed.

  (** A function of each entry of a compact matrix. *)
  Lemma map_correct s t r c M (phi : R -> R) :
    (forall e f, context e -> gives e s f -> exists g, gives e t g /\
       forall q, (q < N)%nat -> g q = phi (f q)) ->
    holds (row_major s r c) M -> holds (row_major t r c) (fun i j => phi (M i j)).
  Proof.
    intros T H. apply holds_compact in H. destruct H as [C [f [F H]]].
    apply holds_compact. split; [exact C|]. exists (fun q => phi (f q)). split.
    - intros e E. destruct (T e f E (F e E)) as [g [G P]]. now apply (gives_ext N tokens e t g).
    - intros i j I J. destruct (H i j I J) as [L V]. split; [exact L|]. now rewrite V.
  Qed.
End Matrices.

(** ** The context of a whole program: none *)
Definition closed (e : environment) := True.
Lemma closed_keeps h : keeps closed h.
Proof. unfold keeps, closed; auto. Qed.

(** A statement for all environments holds in every context. *)
Lemma closed_holds N tokens context m M :
  (exists e, context e) -> holds N tokens closed m M -> holds N tokens context m M.
Proof.
  intros E [_ [f [o [F [O H]]]]]. split; [exact E|]. exists f, o.
  split; [intros; now apply F|]. split; [intros; now apply O|exact H].
Qed.

(** Inside of head s of family number 0 of a sum of height h. *)
Definition in_head (h s : nat) (e : environment) := e h 0%nat = s.
Lemma in_head_keeps h s k : k <> h -> keeps (in_head h s) k.
Proof.
  intros D e f t E H. unfold in_head, bind in *. rewrite E.
  now rewrite (proj2 (Nat.eqb_neq h k)) by auto.
Qed.
