(** * Statements of the paper that do not hold as printed, with the counterexamples of docs/errata.md

    The definitions are transcribed from the paper. Each of the theorems [E1_refuted] … [E36_refuted]
    negates the printed statement. The other files prove corrected statements for most of these errata
    ([Constructions.v] lists the theorems). *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Products Masks Lines Scatter Universal Paper.
From Locum Require Import Heads Tiled Norm Activations Encoder Sequences Sorting.
Open Scope R_scope.

(** ** E9, Proposition 1D: m₀i₀ + i₁ is not injective (2×3) *)
Theorem E9_refuted :
  ~ forall m0 m1 i0 i1 j0 j1 : nat, (i0 < m0)%nat -> (i1 < m1)%nat -> (j0 < m0)%nat -> (j1 < m1)%nat ->
      (m0 * i0 + i1 = m0 * j0 + j1)%nat -> i0 = j0 /\ i1 = j1.
Proof. intros H. destruct (H 2 3 0 2 1 0)%nat; lia. Qed.

(** ** E17, Theorem 1: the paper's criterion k ≥ min(r, c) does not require n ≤ min(d, d_v) ((2, 2, 1)) *)
Definition criterion (n d dv : nat) : Prop :=
  (* X·A, XA·Xᵀ, X·V and softmax·XV *)
  (Nat.min n d <= d /\ Nat.min n n <= d /\ Nat.min n dv <= d /\ Nat.min n dv <= n)%nat.
Theorem E17_refuted :
  ~ forall n d dv : nat, (0 < n)%nat -> (0 < d)%nat -> (0 < dv)%nat -> criterion n d dv -> (n <= Nat.min d dv)%nat.
Proof. intros H. specialize (H 2 2 1)%nat. unfold criterion in H. simpl in H. lia. Qed.
Theorem E17_corrected : forall n d dv : nat, criterion n d dv <-> (n <= d)%nat.
Proof. unfold criterion. lia. Qed.

(** ** E1, Listing 2: 2.73 is not e to three significant digits *)
Lemma square_below x y z : 0 <= x -> z <= x * x -> x <= exp y -> z <= exp (2 * y).
Proof. intros. replace (2 * y) with (y + y) by lra. rewrite exp_plus. nra. Qed.

(** exp(−1/256) ≥ 255/256, squared eight times and rounded down to six digits. *)
Lemma e_below : exp 1 < 2725 / 1000.
Proof.
  assert (H : 255 / 256 <= exp (- (1 / 256))) by (pose proof (exp_ineq1_le (- (1 / 256))); lra).
  apply (square_below _ _ (992202 / 1000000)) in H; [|lra|lra].
  apply (square_below _ _ (984464 / 1000000)) in H; [|lra|lra].
  apply (square_below _ _ (969169 / 1000000)) in H; [|lra|lra].
  apply (square_below _ _ (939288 / 1000000)) in H; [|lra|lra].
  apply (square_below _ _ (882261 / 1000000)) in H; [|lra|lra].
  apply (square_below _ _ (778384 / 1000000)) in H; [|lra|lra].
  apply (square_below _ _ (605881 / 1000000)) in H; [|lra|lra].
  apply (square_below _ _ (367091 / 1000000)) in H; [|lra|lra].
  replace (2 * _) with (- (1)) in H by lra.
  assert (exp 1 * exp (- (1)) = 1) by (rewrite <- exp_plus; replace (1 + - (1)) with 0 by lra; apply exp_0).
  pose proof (exp_pos 1). nra.
Qed.

Theorem E1_refuted : ~ Rabs (273 / 100 - exp 1) <= 5 / 1000.
Proof. intros H. pose proof e_below. pose proof (Rle_abs (273 / 100 - exp 1)). lra. Qed.

(** ** E15, the embedding of Corollary hierarchy is not exact (order (1, 1, 1) in (2, 2, 2): ½ instead of 1) *)
Definition pad (m d : nat) (x : nat -> nat -> R) (i j : nat) : R :=
  if Nat.ltb i m && Nat.ltb j d then x i j else 0.
Theorem E15_refuted :
  ~ forall N n d dv m e ev x a v tokens, (0 < m <= n)%nat -> (0 < e <= d)%nat -> (0 < ev <= dv)%nat ->
      (n <= Nat.min d dv)%nat -> (m <= Nat.min e ev)%nat ->
      (n * d <= N /\ n * n <= N /\ n * dv <= N)%nat -> numbers N tokens ->
      tokens_hold N tokens n d 0 (pad m e x) -> tokens_hold N tokens d d (n * d) (pad e e a) ->
      tokens_hold N tokens d dv (n * d + d * d) (pad e ev v) ->
      exists y, run N tokens (U n d dv) = Some y /\
        forall i j, (i < m)%nat -> (j < ev)%nat -> y (i * dv + j)%nat = Num (attention m e x a v i j).
Proof.
  intros H. pose (x := fun _ _ : nat => 1). pose (a := fun _ _ : nat => 0). pose (v := fun _ _ : nat => 1).
  pose (tokens := fun q : nat => Num (match q with 0 => 1 | 8 => 1 | _ => 0 end)).
  assert (NUM : numbers 12 tokens) by (eexists; intros q Q; reflexivity).
  assert (TX : tokens_hold 12 tokens 2 2 0 (pad 1 1 x)).
  { split; [simpl; lia|]. intros i j I J. destruct i as [|[|i]], j as [|[|j]]; (reflexivity || lia). }
  assert (TA : tokens_hold 12 tokens 2 2 (2 * 2) (pad 1 1 a)).
  { split; [simpl; lia|]. intros i j I J. destruct i as [|[|i]], j as [|[|j]]; (reflexivity || lia). }
  assert (TV : tokens_hold 12 tokens 2 2 (2 * 2 + 2 * 2) (pad 1 1 v)).
  { split; [simpl; lia|]. intros i j I J. destruct i as [|[|i]], j as [|[|j]]; (reflexivity || lia). }
  destruct (H 12 2 2 2 1 1 1 x a v tokens)%nat as [y [Y V1]]; auto; try (simpl; lia).
  destruct (U_simulates 12 2 2 2 tokens (pad 1 1 x) (pad 1 1 a) (pad 1 1 v)) as [z [Z V2]]; auto; try lia.
  rewrite Y in Z. injection Z as <-. specialize (V1 0 0 ltac:(lia) ltac:(lia))%nat.
  specialize (V2 0 0 ltac:(lia) ltac:(lia))%nat. rewrite V1 in V2. injection V2 as V2.
  unfold attention, dot, score, dot, pad, x, a, v in V2. simpl in V2.
  repeat (rewrite ?Rmult_0_l, ?Rmult_0_r, ?Rplus_0_l, ?Rplus_0_r, ?Rmult_1_l, ?Rmult_1_r, ?exp_0 in V2). lra.
Qed.

(** ** E16, step 3 of its proof: scores divided by √d give another attention (X = (1, 0; 0, 0), A = V
    = I, order (2, 2, 2) in (2, 4, 4)) *)
Definition scaled_attention n d (scale : R) (x a v : nat -> nat -> R) : nat -> nat -> R :=
  dot n (fun i l => exp (score d x a i l / scale) / sum n (fun m => exp (score d x a i m / scale))) (dot d x v).
Theorem E16_refuted :
  ~ forall n e d x a v, (0 < n <= e)%nat -> (e <= d)%nat ->
      forall i j, (i < n)%nat -> (j < e)%nat ->
        scaled_attention n d (sqrt (INR d)) (pad n e x) (pad e e a) (pad e e v) i j = attention n e x a v i j.
Proof.
  intros H. pose (x := fun i j : nat => match i, j with 0%nat, 0%nat => 1 | _, _ => 0 end).
  pose (one := fun i j : nat => if Nat.eqb i j then 1 else 0).
  specialize (H 2 2 4 x one one ltac:(lia) ltac:(lia) 0 0 ltac:(lia) ltac:(lia))%nat.
  replace (sqrt (INR 4)) with 2 in H
    by (replace (INR 4) with (2 * 2) by (simpl; lra); symmetry; apply sqrt_square; lra).
  unfold scaled_attention, attention, dot, score, dot, pad, x, one in H. simpl in H.
  repeat (rewrite ?Rmult_0_l, ?Rmult_0_r, ?Rplus_0_l, ?Rplus_0_r, ?Rmult_1_l, ?Rmult_1_r in H).
  replace (0 / 2) with 0 in H by lra. rewrite !exp_0 in H.
  set (h := exp (1 / 2)) in *. pose proof (exp_pos (1 / 2)) as HP. fold h in HP.
  assert (HH : exp 1 = h * h) by (unfold h; rewrite <- exp_plus; f_equal; lra). rewrite HH in H.
  assert (H1 : 1 < h) by (pose proof (exp_ineq1_le (1 / 2)); unfold h; lra).
  assert (h * (h * h + 1) = h * h * (h + 1)).
  { apply Rmult_eq_reg_r with (/ (h + 1) * / (h * h + 1)).
    - replace (h * (h * h + 1) * (/ (h + 1) * / (h * h + 1))) with (h / (h + 1)) by (field; split; nra).
      replace (h * h * (h + 1) * (/ (h + 1) * / (h * h + 1))) with (h * h / (h * h + 1)) by (field; split; nra).
      exact H.
    - apply Rmult_integral_contrapositive_currified; apply Rinv_neq_0_compat; nra. }
  nra.
Qed.

(** ** E11, shift: row i of the printed matrix has its 1 in column (n − t + i) mod n (t = 2, n = 5) *)
Definition printed_shift (t : nat) : sop :=
  fetch (Binary Modulo (Binary Add (Binary Subtract Length (integer t)) Indices) Length) Tokens.
Theorem E11_refuted :
  ~ forall N t f, (0 < N)%nat -> (t <= N)%nat ->
      exists y, run N (fun q => Num (f q)) (printed_shift t) = Some y /\
        forall i, (i < N)%nat -> y i = Num (f ((i + t) mod N)%nat).
Proof.
  intros H. pose (f := fun q => INR (10 * q + 10)).
  destruct (H 5 2 f ltac:(lia) ltac:(lia))%nat as [y [Y V]].
  assert (G : gives 5 (fun q => Num (f q)) (fun _ _ => 0%nat) (printed_shift 2) (fun q => f ((3 + q) mod 5)%nat)).
  { apply (gives_fetch 5 _ _ _ Tokens (fun q => (3 + q) mod 5)%nat).
    - apply index_modulo; [|apply index_length|intros; lia]. apply index_add; [|apply gives_indices].
      eapply gives_ext; [|apply gives_subtract; [apply index_length|apply (index_constant 5 _ _ 2)]].
      intros q Q. simpl. lra.
    - now apply gives_tokens.
    - intros q Q. apply Nat.mod_upper_bound. lia. }
  destruct G as [z [Z W]]. unfold run in Y. rewrite Y in Z. injection Z as <-.
  specialize (V 0%nat ltac:(lia)). rewrite W in V by lia. injection V as V. unfold f in V. simpl in V. lra.
Qed.

(** ** E6, Algorithm 3: with R″ of (l, l′) at l·k + l′, two products have the same position ((r, k, c)
    = (2, 2, 3)) *)
Theorem E6_refuted :
  ~ forall N tokens r k c A B, (0 < r)%nat -> (0 < k)%nat -> (0 < c)%nat ->
      (r * c <= N)%nat -> (k <= N)%nat ->
      holds N tokens closed (block r k 0) A -> holds N tokens closed (block k c (r * k)) B ->
      holds N tokens closed
        (row_major (products_at k 1 (block r k 0) (block k c (r * k))) r c) (dot k A B).
Proof.
  intros H. pose (ones := fun _ _ : nat => 1). pose (tokens := fun _ : nat => Num 1).
  assert (NUM : numbers 10 tokens) by (eexists; intros q Q; reflexivity).
  assert (HA : holds 10 tokens closed (block 2 2 0) ones) by (apply closed_block; [exact NUM|split; [simpl; lia|reflexivity]]).
  assert (HB : holds 10 tokens closed (block 2 3 (2 * 2)) ones) by (apply closed_block; [exact NUM|split; [simpl; lia|reflexivity]]).
  pose proof (H 10 tokens 2 2 3 ones ones ltac:(lia) ltac:(lia) ltac:(lia) ltac:(lia) ltac:(lia) HA HB)%nat as P.
  apply holds_compact in P. destruct P as [_ [f [F V]]].
  destruct (F (fun _ _ => 0%nat) I) as [u [U1 U2]].
  destruct (gives_products 10 tokens closed 2 1 (block 2 2 0) (block 2 3 (2 * 2)) ones ones
    ltac:(simpl; lia) eq_refl ltac:(simpl; lia) (closed_keeps 1) HA HB (fun _ _ => 0%nat) I) as [w [W1 W2]].
  rewrite U1 in W1. injection W1 as <-.
  destruct (V 0 2 ltac:(lia) ltac:(lia))%nat as [_ V0].
  specialize (U2 2%nat ltac:(lia)). rewrite W2 in U2 by lia. injection U2 as U2.
  simpl in V0. rewrite V0 in U2. unfold dot, ones in U2. simpl in U2. lra.
Qed.

(** ** E7, Algorithm 2: with blocks of height r, some denominators are 0 ((r, c) = (2, 3)) *)
Definition printed_softmax (r c : nat) : sop :=
  let l := Family 1 0 r in
  let keys := SelectorAnd (Select Ge Indices (Binary Multiply (Head l) (integer c)))
                (Select Lt Indices (Binary Add (Binary Multiply (Head l) (integer c)) (integer c))) in
  let queries := SelectorAnd (Select Le (Binary Multiply (Head l) (integer r)) Indices)
                   (Select Gt (Binary Add (Binary Multiply (Head l) (integer r)) (integer r)) Indices) in
  Binary Divide (Unary Exp Tokens)
    (SumOver (Binary Multiply (integer c)
                (Aggregate (SelectorAnd keys queries) (Unary Exp Tokens) (Integer 0))) [l]).

Lemma everywhere_none : forall A n (f : nat -> option A) d q,
  (q < n)%nat -> f q = None -> everywhere n f d = None.
Proof.
  induction n; intros f d q Q H; [lia|]. simpl. destruct (Nat.eq_dec q n) as [->|D].
  - rewrite H. now destruct (everywhere n f d).
  - now rewrite (IHn f d q) by (assumption || lia).
Qed.

Theorem E7_refuted :
  ~ forall r c f, (0 < r)%nat -> (0 < c)%nat ->
      exists y, run (r * c) (fun q => Num (f q)) (printed_softmax r c) = Some y.
Proof.
  intros H. destruct (H 2%nat 3%nat (fun _ => 0) ltac:(lia) ltac:(lia)) as [y Y].
  set (tokens := fun q : nat => Num 0) in Y. set (e := fun _ _ : nat => 0%nat) in Y.
  set (l := Family 1 0 2).
  assert (GE : forall e, gives 6 tokens e (Unary Exp Tokens) (fun _ => exp 0))
    by (intros; apply (gives_exp 6 tokens _ Tokens (fun _ => 0)); now apply gives_tokens).
  set (m := fun s q k : nat => (compare Ge (INR k) (INR (s * 3)) && compare Lt (INR k) (INR (s * 3 + 3))) &&
                 (compare Le (INR (s * 2)) (INR q) && compare Gt (INR (s * 2 + 2)) (INR q))).
  assert (SUM : gives 6 tokens e (SumOver (Binary Multiply (integer 3)
      (Aggregate (SelectorAnd
        (SelectorAnd (Select Ge Indices (Binary Multiply (Head l) (integer 3)))
           (Select Lt Indices (Binary Add (Binary Multiply (Head l) (integer 3)) (integer 3))))
        (SelectorAnd (Select Le (Binary Multiply (Head l) (integer 2)) Indices)
           (Select Gt (Binary Add (Binary Multiply (Head l) (integer 2)) (integer 2)) Indices)))
        (Unary Exp Tokens) (Integer 0))) [l])
      (fun q => sum 2 (fun s => INR 3 * mean (map (fun _ => exp 0) (selected 6 (m s) q))))).
  { apply (gives_sum 6 tokens e _ l (fun s q => INR 3 * mean (map (fun _ => exp 0) (selected 6 (m s) q)))).
    intros s S. set (e' := bind e l s).
    assert (IL : index 6 tokens e' (Head l) (fun _ => s)) by apply index_bound.
    assert (T : forall n, index 6 tokens e' (Binary Multiply (Head l) (integer n)) (fun _ => s * n)%nat)
      by (intros; apply index_multiply; [exact IL|apply index_constant]).
    assert (T' : forall n, index 6 tokens e' (Binary Add (Binary Multiply (Head l) (integer n)) (integer n))
                   (fun _ => s * n + n)%nat) by (intros; apply index_add; [apply T|apply index_constant]).
    pose proof (gives_indices 6 tokens e') as II.
    apply gives_multiply; [apply (index_constant 6 tokens e' 3)|].
    apply gives_aggregate; [|apply GE].
    apply selects_and; apply selects_and; apply selects_compare; auto. }
  unfold run, printed_softmax in Y. fold l e in Y. destruct (GE e) as [p [P1 P2]], SUM as [z [Z1 Z2]].
  cbn [eval] in Y. change (2 * 3)%nat with 6%nat in Y.
  assert (NONE : eval 6 tokens (printed_softmax 2 3) e = None).
  { change (eval 6 tokens (printed_softmax 2 3) e) with
      (match eval 6 tokens (Unary Exp Tokens) e, eval 6 tokens (SumOver (Binary Multiply (integer 3)
      (Aggregate (SelectorAnd
        (SelectorAnd (Select Ge Indices (Binary Multiply (Head l) (integer 3)))
           (Select Lt Indices (Binary Add (Binary Multiply (Head l) (integer 3)) (integer 3))))
        (SelectorAnd (Select Le (Binary Multiply (Head l) (integer 2)) Indices)
           (Select Gt (Binary Add (Binary Multiply (Head l) (integer 2)) (integer 2)) Indices)))
        (Unary Exp Tokens) (Integer 0))) [l]) e with
       | Some v, Some w => positions 6 (fun q => apply2 Divide (v q) (w q)) | _, _ => None end).
    rewrite P1, Z1. apply everywhere_none with 4%nat; [lia|]. rewrite P2, Z2 by lia.
    assert (EMPTY : forall s, (s < 2)%nat -> selected 6 (m s) 4 = []).
    { intros s S. apply filter_none. intros k _. unfold m. rewrite compare_greater.
      rewrite (proj2 (Nat.ltb_ge 4 (s * 2 + 2))) by lia. now rewrite !andb_false_r. }
    cbn [sum]. rewrite !EMPTY by lia. unfold apply2, number, mean. simpl.
    destruct (Req_EM_T _ 0) as [|n]; [reflexivity|]. exfalso. apply n. unfold Rdiv. ring. }
  change (eval 6 tokens (printed_softmax 2 3) e = Some y) in Y. congruence.
Qed.

(** ** E3, Listing 6: Match₂ on tokens in {1, …, p} is wrong for the token p (p = 5 on 5, 5) *)
Definition printed_match2 (p : nat) : sop :=
  let rest := Binary Modulo Tokens (integer p) in
  let detect := Aggregate (Select Eq rest (Binary Subtract (integer p) rest)) Tokens (Integer 0) in
  IfElse (Binary (Compare Eq) detect (integer 0)) (integer 0) (integer 1).
Theorem E3_refuted :
  ~ forall N p (x : nat -> Z), (0 < p)%nat -> (forall q, (q < N)%nat -> (1 <= x q <= Z.of_nat p)%Z) ->
      exists y, run N (fun q => Num (IZR (x q))) (printed_match2 p) = Some y /\
        forall q, (q < N)%nat -> y q =
          Num (if existsb (fun k => Z.eqb ((x k + x q) mod Z.of_nat p) 0) (seq 0 N) then 1 else 0).
Proof.
  intros H. destruct (H 2%nat 5%nat (fun _ => 5%Z) ltac:(lia) ltac:(lia)) as [y [Y V]].
  set (tokens := fun q : nat => Num 5) in Y. set (e := fun _ _ : nat => 0%nat).
  assert (T : gives 2 tokens e Tokens (fun _ => 5)) by now apply gives_tokens.
  assert (REST : gives 2 tokens e (Binary Modulo Tokens (integer 5)) (fun _ => 0)).
  { eapply gives_ext; [|apply gives_modulo; [exact T|apply (gives_integer 2 tokens e 5)|intros; lra]].
    intros q Q. cbv beta. rewrite (floor_integer (5 / 5) 1) by lra. lra. }
  assert (D : gives 2 tokens e (Aggregate (Select Eq (Binary Modulo Tokens (integer 5))
      (Binary Subtract (integer 5) (Binary Modulo Tokens (integer 5)))) Tokens (Integer 0)) (fun _ => 0)).
  { eapply gives_ext; [|apply gives_aggregate; [apply selects_real; [exact REST|
      apply gives_subtract; [apply (gives_integer 2 tokens e 5)|exact REST]]|exact T]].
    intros q Q. cbv beta. replace (selected 2 _ q) with (@nil nat); [apply (mean_none (fun _ => 5))|].
    symmetry. apply filter_none. intros k _. unfold compare. destruct (Req_EM_T 0 (5 - 0)); [lra|reflexivity]. }
  assert (G : gives 2 tokens e (printed_match2 5) (fun _ => 0)).
  { eapply gives_ext; [|apply gives_if; [apply says_compare; [exact D|apply (gives_integer 2 tokens e 0)]|
      apply (gives_integer 2 tokens e 0)|apply (gives_integer 2 tokens e 1)]].
    intros q Q. cbv beta. unfold compare. destruct (Req_EM_T 0 0); [reflexivity|lra]. }
  destruct G as [z [Z W]]. change (eval 2 tokens (printed_match2 5) e = Some y) in Y. rewrite Y in Z.
  injection Z as <-. specialize (V 0%nat ltac:(lia)). rewrite W in V by lia. simpl in V. injection V. lra.
Qed.

(** ** E2, Listing 5: MaxMin can be wrong for negative numbers at odd positions (1, −2 gives 1, 1) *)
Definition printed_flips : sop :=
  let following :=
    Aggregate (SelectorAnd (Select Eq Indices (Binary Add Indices (integer 1)))
      (Select Eq (integer 1) (Binary Add (Binary Modulo Indices (integer 2)) (integer 1)))) Tokens (Integer 0) in
  IfElse (Binary (Compare Lt) (Binary Subtract (fetch Indices Tokens) following) (integer 0))
    (integer 1) (integer 0).
Definition printed_maxmin : sop :=
  let flips := Binary Add printed_flips
    (Aggregate (Select Eq (Binary Add Indices (integer 1)) Indices) printed_flips (Integer 0)) in
  let by_two := Binary Add
    (Aggregate (Select Eq (integer 0) (Binary Modulo Indices (integer 2))) (integer 1) (Integer 0))
    (Aggregate (Select Eq (integer 1) (Binary Modulo Indices (integer 2))) (Constant (Integer (-1))) (Integer 0)) in
  Binary Add (Binary Multiply flips (fetch (Binary Add Indices by_two) Tokens))
    (Binary Multiply (Binary Subtract (integer 1) flips) (fetch Indices Tokens)).

Theorem E2_refuted :
  ~ forall N f, (N mod 2 = 0)%nat ->
      exists y, run N (fun q => Num (f q)) printed_maxmin = Some y /\
        forall q, (q < N)%nat -> y q = Num (sorted_pairs f q).
Proof.
  intros H. pose (f := fun q : nat => match q with 0%nat => 1 | _ => -2 end).
  destruct (H 2%nat f eq_refl) as [y [Y V]].
  set (tokens := fun q : nat => Num (f q)) in Y. set (e := fun _ _ : nat => 0%nat).
  assert (T : gives 2 tokens e Tokens f) by now apply gives_tokens.
  pose proof (gives_indices 2 tokens e) as II.
  assert (NEXT : index 2 tokens e (Binary Add Indices (integer 1)) (fun q => q + 1)%nat)
    by (apply index_add; [exact II|apply (index_constant 2 tokens e 1)]).
  assert (HALF : index 2 tokens e (Binary Modulo Indices (integer 2)) (fun q => q mod 2)%nat)
    by (apply index_mod; [lia|exact II]).
  assert (ITSELF : gives 2 tokens e (fetch Indices Tokens) f) by now apply gives_itself.
  (* Position 1 has no partner and uses 0 instead. Since −2 < 0, the listing flips the pair. *)
  assert (FLIPS : gives 2 tokens e printed_flips (fun q => match q with 0%nat => 0 | _ => 1 end)).
  { eapply gives_ext; [|apply gives_if; [apply says_compare; [apply gives_subtract; [exact ITSELF|
      apply gives_aggregate; [apply selects_and; [apply selects_equal; [exact II|exact NEXT]|
        apply selects_equal; [apply (index_constant 2 tokens e 1)|
          apply index_add; [exact HALF|apply (index_constant 2 tokens e 1)]]]|exact T]]|
      apply (gives_integer 2 tokens e 0)]|apply (gives_integer 2 tokens e 1)|apply (gives_integer 2 tokens e 0)]].
    intros q Q. cbv beta. assert (q = 0 \/ q = 1)%nat as [-> | ->] by lia; unfold selected, mean, compare, f; simpl;
      destruct (Rlt_dec _ 0); auto; lra. }
  assert (BACK : gives 2 tokens e (Aggregate (Select Eq (Binary Add Indices (integer 1)) Indices) printed_flips
      (Integer 0)) (fun _ => 0)).
  { eapply gives_ext; [|apply gives_aggregate; [apply selects_equal; [exact NEXT|exact II]|exact FLIPS]].
    intros q Q. cbv beta. assert (q = 0 \/ q = 1)%nat as [-> | ->] by lia; unfold selected, mean; simpl; lra. }
  assert (OTHER : index 2 tokens e (Binary Add Indices (Binary Add
      (Aggregate (Select Eq (integer 0) (Binary Modulo Indices (integer 2))) (integer 1) (Integer 0))
      (Aggregate (Select Eq (integer 1) (Binary Modulo Indices (integer 2))) (Constant (Integer (-1))) (Integer 0))))
      (fun q => 1 - q)%nat).
  { eapply gives_ext; [|apply gives_add; [exact II|apply gives_add; apply gives_aggregate;
      [apply selects_equal; [apply (index_constant 2 tokens e 0)|exact HALF]|apply (gives_integer 2 tokens e 1)|
       apply selects_equal; [apply (index_constant 2 tokens e 1)|exact HALF]|apply (gives_integer 2 tokens e (-1))]]].
    intros q Q. cbv beta. assert (q = 0 \/ q = 1)%nat as [-> | ->] by lia; unfold selected, mean; simpl; lra. }
  assert (G : gives 2 tokens e printed_maxmin (fun _ => 1)).
  { eapply gives_ext; [|apply gives_add; apply gives_multiply; [apply gives_add; [exact FLIPS|exact BACK]|
      apply (gives_fetch 2 tokens e _ Tokens (fun q => 1 - q)%nat f OTHER T); intros; lia|
      apply gives_subtract; [apply (gives_integer 2 tokens e 1)|apply gives_add; [exact FLIPS|exact BACK]]|
      exact ITSELF]].
    intros q Q. cbv beta. assert (q = 0 \/ q = 1)%nat as [-> | ->] by lia; simpl; lra. }
  destruct G as [z [Z W]]. change (eval 2 tokens printed_maxmin e = Some y) in Y. rewrite Y in Z.
  injection Z as <-. specialize (V 1%nat ltac:(lia)). rewrite W in V by lia. injection V as V.
  unfold sorted_pairs, f in V. simpl in V. rewrite Rmin_right in V by lra. lra.
Qed.

(** ** E23: average-hard attention averages over all maximal scores, so a row of zeros does not give 0 *)
Definition attended (n : nat) (score : nat -> nat) : list nat :=
  let best := fold_right Nat.max 0%nat (map score (seq 0 n)) in
  filter (fun j => Nat.eqb (score j) best) (seq 0 n).
Definition average_hard (n : nat) (score : nat -> nat) (s : nat -> R) : R := mean (map s (attended n score)).
(** R_l of Algorithm 2 for r = c, for which it is right (E7). The index l is counted from 0. *)
Definition printed_block (r l i j : nat) : nat := if Nat.eqb (i / r) l && Nat.eqb (j / r) l then 1 else 0.
Definition denominator (r : nat) (a : nat -> R) (i : nat) : R :=
  sum r (fun l => INR r * average_hard (r * r) (printed_block r l i) (fun q => exp (a q))).
Theorem E23_refuted :
  ~ forall r a i, (0 < r)%nat -> (i < r * r)%nat ->
      exp (a i) / denominator r a i = exp (a i) / sum r (fun t => exp (a (i / r * r + t)%nat)).
Proof.
  intros H. specialize (H 2%nat (fun _ => 0) 0%nat ltac:(lia) ltac:(simpl; lia)).
  unfold denominator, average_hard, attended, printed_block, mean in H. simpl in H. rewrite exp_0 in H. lra.
Qed.

(** ** E25: position j of P reads the position i whose shift is j; Listing 7 reads (i + 2, j + 2) *)
Definition shifted (r a b i : nat) : nat := (r * ((i / r + a) mod r) + (i mod r + b) mod r)%nat.
Definition algorithm_5_reads (r a b j : nat) : list nat :=
  filter (fun i => Nat.eqb (shifted r a b i) j) (seq 0 (r * r)).
Theorem E25_agree_at_order_3 : forall j, (j < 9)%nat ->
  algorithm_5_reads 3 1 1 j = [shifted 3 2 2 j] /\ algorithm_5_reads 3 2 2 j = [shifted 3 1 1 j] /\
  algorithm_5_reads 3 1 2 j = [shifted 3 2 1 j] /\ algorithm_5_reads 3 2 1 j = [shifted 3 1 2 j].
Proof. intros j J. do 9 (destruct j as [|j]; [now vm_compute|]). lia. Qed.
Theorem E25_differ_at_order_4 : algorithm_5_reads 4 1 1 0 = [15%nat] /\ shifted 4 2 2 0 = 10%nat.
Proof. now vm_compute. Qed.

(** ** E27, Proposition 1D: over all shapes, transposition has no g′ (1, …, 6 as 2×3 and as 3×2) *)
Definition row_by_row (r c : nat) (a : nat -> nat -> nat) : list nat :=
  map (fun k => a (k / c) (k mod c))%nat (seq 0 (r * c)).
Theorem E27_refuted :
  ~ exists g : list nat -> list nat, forall r c a, (0 < r)%nat -> (0 < c)%nat ->
      g (row_by_row r c a) = row_by_row c r (fun i j => a j i).
Proof.
  intros [g H]. pose proof (H 2 3 (fun i j => 3 * i + j + 1) ltac:(lia) ltac:(lia))%nat as A.
  pose proof (H 3 2 (fun i j => 2 * i + j + 1) ltac:(lia) ltac:(lia))%nat as B.
  vm_compute in A, B. rewrite A in B. discriminate.
Qed.

(** ** E34, remark on Lipschitz functions: a function of the sorted pair is not near x (½ at (0, 1) or (1, 0)) *)
Theorem E34_refuted :
  ~ forall f : R -> R -> R, (forall x y u v, Rabs (f x y - f u v) <= sqrt (Rsqr (x - u) + Rsqr (y - v))) ->
      forall epsilon, 0 < epsilon -> exists network : R -> R -> R,
        forall x y, 0 <= x <= 1 -> 0 <= y <= 1 -> Rabs (network (Rmax x y) (Rmin x y) - f x y) <= epsilon.
Proof.
  intros H. destruct (H (fun x _ => x)) with (epsilon := 1 / 4) as [network N]; [|lra|].
  - intros x y u v. rewrite <- sqrt_Rsqr_abs. apply sqrt_le_1_alt. pose proof (Rle_0_sqr (y - v)). lra.
  - pose proof (N 0 1 ltac:(lra) ltac:(lra)) as A. pose proof (N 1 0 ltac:(lra) ltac:(lra)) as B.
    rewrite Rmax_right, Rmin_left in A by lra. rewrite Rmax_left, Rmin_right in B by lra.
    rewrite <- Rabs_Ropp in B. pose proof (Rle_abs (network 1 0 - 0)). pose proof (Rle_abs (- (network 1 0 - 1))). lra.
Qed.

(** ** E36: reflectedIndices of Listing 1 is not ρ of Algorithm 1, but its inverse (r = 3, c = 2) *)
Definition reflected (r c p : nat) : nat := (p mod r * c + (p - p mod r) / r)%nat.
Definition rho (r c p : nat) : nat := (r * (p mod c) + p / c)%nat.
Theorem E36_refuted : ~ forall c p, (p < 3 * c)%nat -> reflected 3 c p = rho 3 c p.
Proof. intros H. specialize (H 2 1 ltac:(lia))%nat. discriminate. Qed.
Theorem E36_inverse : forall r c p, (0 < r)%nat -> (0 < c)%nat -> (p < r * c)%nat -> reflected r c (rho r c p) = p.
Proof.
  intros r c p R C P. unfold reflected, rho.
  assert (Q : (p / c < r)%nat) by (apply Nat.div_lt_upper_bound; lia).
  assert (M : ((r * (p mod c) + p / c) mod r = p / c)%nat)
    by (rewrite Nat.add_comm, Nat.mul_comm, Nat.mod_add by lia; now apply Nat.mod_small).
  rewrite M. replace (r * (p mod c) + p / c - p / c)%nat with (p mod c * r)%nat by lia.
  rewrite Nat.div_mul by lia. pose proof (Nat.div_mod p c ltac:(lia)). lia.
Qed.
