(** * Theorem 1 with the heads of the paper: one head per row in the softmax, r·c heads in a product

    The theorems are [paper_softmax_correct] (Lemma softmax, Algorithm 2) and [paper_U_simulates]. The
    latter is the statement of [U_simulates] in [Universal.v], for the program with the heads of the
    paper. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Products Masks Universal.
Open Scope R_scope.

(** ** Programs *)

(** Head l sums the weights of row l for the queries of row l: Algorithm 2. *)
Definition paper_row_sums (h r c : nat) (weight : sop) : sop :=
  let l := Family h 0 r in
  let first := sop_of (times (At (Head l)) (Int c)) in
  let last := sop_of (plus (times (At (Head l)) (Int c)) (Int c)) in
  let keys := SelectorAnd (Select Ge Indices first) (Select Lt Indices last) in
  let queries := SelectorAnd (Select Le first Indices) (Select Gt last Indices) in
  SumOver
    (Binary Multiply (integer c) (Aggregate (SelectorAnd keys queries) weight (Integer 0))) [l].

Definition paper_softmax (h : nat) (stable : bool) (r c : nat) (s : sop) : sop :=
  let weight := weights stable Natural (inside r c) c s in
  divided (inside r c) weight (paper_row_sums h r c weight).

(** U of the recipe *paper*. *)
Definition paper_U (stable : bool) n d dv : sop :=
  let s := source (paper_matmul 2 (paper_matmul 1 (X n d) (A n d)) (transpose (X n d))) in
  source (paper_matmul 4
    (row_major (paper_softmax 3 stable n n s) n n)
    (paper_matmul 1 (X n d) (V n d dv))).

(** ** Meaning *)
Section Paper.
  Variable N : nat.
  Variable tokens : nat -> value.
  Notation gives := (gives N tokens).
  Notation index := (index N tokens).
  Notation selects := (selects N tokens).
  Variable context : environment -> Prop.
  Notation holds := (holds N tokens context).

  Lemma selects_compare e p keys queries f g :
    index e keys f -> index e queries g ->
    selects e (Select p keys queries) (fun q k => compare p (INR (f k)) (INR (g q))).
  Proof.
    intros [v [E V0]] [w [F W]]. unfold Reasoning.selects. rewrite select_select, E, F.
    eexists; split; [reflexivity|]. intros q k Q K. cbv beta. now rewrite V0, W by assumption.
  Qed.

  Lemma compare_at_least a b : compare Ge (INR a) (INR b) = Nat.leb b a.
  Proof.
    unfold compare. destruct (Nat.leb_spec b a), (Rge_dec (INR a) (INR b)) as [L|L]; auto; exfalso.
    - apply L. now apply Rle_ge, le_INR.
    - apply Rge_le, INR_le in L. lia.
  Qed.
  Lemma compare_at_most a b : compare Le (INR a) (INR b) = Nat.leb a b.
  Proof.
    unfold compare. destruct (Nat.leb_spec a b), (Rle_dec (INR a) (INR b)) as [L|L]; auto; exfalso.
    - now apply L, le_INR.
    - apply INR_le in L. lia.
  Qed.
  Lemma compare_greater a b : compare Gt (INR a) (INR b) = Nat.ltb b a.
  Proof.
    unfold compare. destruct (Nat.ltb_spec b a), (Rgt_dec (INR a) (INR b)) as [L|L]; auto; exfalso.
    - apply L. now apply lt_INR.
    - apply INR_lt in L. lia.
  Qed.

  Definition between c s i : bool := Nat.leb (s * c) i && Nat.ltb i (s * c + c).

  Lemma between_row c s i : (0 < c)%nat -> between c s i = Nat.eqb (i / c) s.
  Proof.
    intros C. unfold between. pose proof (Nat.div_mod i c ltac:(lia)).
    pose proof (Nat.mod_upper_bound i c ltac:(lia)).
    destruct (Nat.eqb_spec (i / c) s), (Nat.leb_spec (s * c) i), (Nat.ltb_spec i (s * c + c));
      auto; exfalso; nia.
  Qed.

  Lemma gives_paper_row_sums e h r c weight w :
    (0 < c)%nat -> (r * c <= N)%nat -> keeps context h -> context e ->
    (forall e, context e -> gives e weight w) ->
    gives e (paper_row_sums h r c weight)
      (fun q => if Nat.ltb q (r * c) then sum c (fun t => w (q / c * c + t)%nat) else 0).
  Proof.
    intros C RC KEEP E0 W. set (l := Family h 0 r).
    set (part := fun s q => INR c * mean (map w (selected N
       (fun q k => between c s k && between c s q) q))).
    eapply gives_ext; [|apply (gives_sum N tokens e _ l part)].
    - intros q Q. simpl.
      assert (E : forall s, part s q =
        if Nat.eqb s (q / c) then INR c * mean (map w (selected N (in_row c) q)) else 0).
      { intros s. unfold part. destruct (Nat.eqb_spec s (q / c)) as [->|D].
        - do 3 f_equal. apply selected_ext. intros k K. rewrite !between_row by exact C.
          unfold in_row. now rewrite Nat.eqb_refl, andb_true_r.
        - replace (selected N _ q) with (@nil nat).
          + unfold mean; simpl. unfold Rdiv. rewrite Rmult_0_l. apply Rmult_0_r.
          + symmetry. apply filter_none. intros k _. rewrite !between_row by exact C.
            rewrite (proj2 (Nat.eqb_neq (q / c) s)) by auto. apply andb_false_r. }
      rewrite (sum_ext r _ _ (fun s _ => E s)).
      destruct (Nat.ltb_spec q (r * c)) as [L|L].
      + rewrite (sum_one r (q / c) (fun _ => INR c * mean (map w (selected N (in_row c) q))))
          by (apply Nat.div_lt_upper_bound; lia).
        now apply (row_sum N r c q w).
      + rewrite (sum_ext r _ (fun _ => 0)); [apply sum_zero|]. intros s S.
        destruct (Nat.eqb_spec s (q / c)) as [->|]; [|reflexivity].
        exfalso. pose proof (Nat.div_mod q c ltac:(lia)).
        pose proof (Nat.mod_upper_bound q c ltac:(lia)). nia.
    - simpl. intros s S. set (e' := bind e l s).
      assert (IL : index e' (sop_of (At (Head l))) (fun _ => s)) by apply index_bound.
      assert (IF : index e' (sop_of (times (At (Head l)) (Int c))) (fun _ => s * c)%nat).
      { apply (index_times N tokens e' _ _ (fun _ => s) (fun _ => c)); [exact IL|apply index_int]. }
      assert (IE : index e' (sop_of (plus (times (At (Head l)) (Int c)) (Int c)))
                     (fun _ => s * c + c)%nat).
      { apply (index_plus N tokens e' _ _ (fun _ => s * c)%nat (fun _ => c));
          [exact IF|apply index_int]. }
      apply gives_multiply; [apply (index_constant N tokens e' c)|].
      apply gives_aggregate; [|now apply W, KEEP].
      pose proof (gives_indices N tokens e') as II.
      pose proof (selects_compare e' Ge _ _ _ _ II IF) as S1.
      pose proof (selects_compare e' Lt _ _ _ _ II IE) as S2.
      pose proof (selects_compare e' Le _ _ _ _ IF II) as S3.
      pose proof (selects_compare e' Gt _ _ _ _ IE II) as S4.
      eapply selects_ext;
        [|exact (selects_and N tokens e' _ _ _ _ (selects_and N tokens e' _ _ _ _ S1 S2)
                   (selects_and N tokens e' _ _ _ _ S3 S4))].
      intros q k Q K. cbv beta.
      now rewrite compare_at_least, compare_less, compare_at_most, compare_greater.
  Qed.

  (** Lemma softmax with the heads of the paper, for all shapes. *)
  Theorem paper_softmax_correct h stable r c s M :
    (0 < c)%nat -> (r * c <= N)%nat -> keeps context h -> holds (row_major s r c) M ->
    holds (row_major (paper_softmax h stable r c s) r c)
      (fun i j => exp (M i j) / sum c (fun t => exp (M i t))).
  Proof.
    intros C RC KEEP H. apply holds_compact in H. destruct H as [E0 [f [F H]]].
    set (K := fun q => Nat.ltb q (r * c)).
    destruct (gives_weights N tokens context r c Natural (inside r c) K C RC I
      (fun e _ => says_inside N tokens e r c) stable s f F) as [mu W].
    eapply holds_ext; [|apply (softmax_of_weights N tokens context r c Natural (inside r c) K C RC
      (fun e _ => says_inside N tokens e r c) (fun q => proj1 (Nat.ltb_lt _ _)) M mu
      (weights stable Natural (inside r c) c s) (paper_row_sums h r c (weights stable Natural (inside r c) c s))
      f (fun q => if Nat.ltb q (r * c) then sum c (fun t =>
        if K (q / c * c + t)%nat then raise Natural (f (q / c * c + t)%nat - mu ((q / c * c + t) / c)%nat) else 0)
        else 0) E0); [|exact W| |]].
    - intros i j I J. simpl in I, J. unfold softmax_of.
      assert (A : forall t, (t < c)%nat -> K (i * c + t)%nat = true)
        by (intros; apply Nat.ltb_lt; nia).
      rewrite A by exact J. simpl raise. f_equal. apply sum_ext. intros t T. now rewrite A.
    - intros i j I J. now apply H.
    - intros e E. now apply (gives_paper_row_sums e h r c _
        (fun q => if K q then raise Natural (f q - mu (q / c)%nat) else 0)).
    - intros q L. cbv beta. now rewrite (proj2 (Nat.ltb_lt _ _) L).
  Qed.
End Paper.

Section PaperUniversal.
  Variables (N n d dv : nat) (tokens : nat -> value) (x a v : nat -> nat -> R).
  Hypothesis sizes : (0 < n /\ 0 < d /\ 0 < dv)%nat.
  Hypothesis room : (n * d <= N /\ n * n <= N /\ n * dv <= N)%nat.
  Hypothesis blanks : numbers N tokens.
  Hypothesis tokens_X : tokens_hold N tokens n d 0 x.
  Hypothesis tokens_A : tokens_hold N tokens d d (n * d) a.
  Hypothesis tokens_V : tokens_hold N tokens d dv (n * d + d * d) v.

  (** Theorem 1 for the program with the heads of the paper. *)
  Theorem paper_U_simulates stable :
    exists y, run N tokens (paper_U stable n d dv) = Some y /\
      forall i j, (i < n)%nat -> (j < dv)%nat ->
        y (i * dv + j)%nat = Num (attention n d x a v i j).
  Proof.
    pose proof (closed_block N tokens blanks _ _ _ _ tokens_X) as HX.
    pose proof (closed_block N tokens blanks _ _ _ _ tokens_A) as HA.
    pose proof (closed_block N tokens blanks _ _ _ _ tokens_V) as HV.
    destruct tokens_A as [LA _], tokens_V as [LV _].
    apply run_of. unfold paper_U.
    set (s := source (paper_matmul 2 (paper_matmul 1 (X n d) (A n d)) (transpose (X n d)))).
    assert (HS : holds N tokens closed (row_major s n n) (score d x a)).
    { change (row_major s n n) with
        (paper_matmul 2 (paper_matmul 1 (X n d) (A n d)) (transpose (X n d))).
      apply paper_matmul_correct; simpl; try apply closed_keeps; try nia.
      - apply paper_matmul_correct; simpl; try apply closed_keeps; try nia; assumption.
      - apply transpose_correct; simpl; try nia. exact HX. }
    match goal with |- holds _ _ _ (row_major (source ?m) _ _) _ =>
      change (holds N tokens closed m (attention n d x a v)) end.
    apply paper_matmul_correct; simpl; try apply closed_keeps; try nia.
    - apply paper_softmax_correct; try apply closed_keeps; try lia. exact HS.
    - apply paper_matmul_correct; simpl; try apply closed_keeps; try nia; assumption.
  Qed.
End PaperUniversal.
