(** * Operations on sequences: identify, shift, sums, Match₂, k-PARITY; and the layout of arrays

    The theorems are [prop_bijection] (Proposition 1D, for arrays with any number of dimensions),
    [all_sum_correct] (Proposition AHAT, for all entries), [identify_correct], [shift_correct],
    [rotate_correct] (snippets of Lemma multi-head), [match2_correct] and [k_parity_correct]. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Products Masks Lines.
Open Scope R_scope.

(** ** Programs *)

(** The values at [start] … [start + count − 1], at their positions, and 0 elsewhere. *)
Definition identify (start count : nat) (s : sop) : sop :=
  Aggregate
    (SelectorAnd (SelectorAnd (Select Eq Indices Indices) (Select Ge Indices (integer start)))
       (Select Lt Indices (integer (start + count))))
    s (Integer 0).

(** The sequence rotated to the left: all positions, or the first [n] positions. *)
Definition shift (by_ : nat) (s : sop) : sop :=
  fetch (Binary Modulo (Binary Add Indices (integer by_)) Length) s.
Definition rotate (by_ n : nat) (s : sop) : sop :=
  fetch (Binary Modulo (Binary Add Indices (integer by_)) (integer n)) s.

(** The sum of all entries of a compact matrix, at every position. *)
Definition all_sum (r c : nat) (s : sop) : sop :=
  summed_by (r * c) (Select Lt Indices (integer (r * c))) s.

(** 1 if the sum of this token and some token (possibly itself) is a multiple of p, else 0. *)
Definition match2 (p : nat) (s : sop) : sop :=
  let rest := Binary Modulo s (integer p) in
  Unary Indicator
    (Binary (Compare Gt)
       (Aggregate (Select Eq rest (Binary Modulo (Binary Subtract (integer p) rest) (integer p)))
          (integer 1) (Integer 0))
       (integer 0)).

(** The parity of the bits at the places, with one head for each bit. *)
Definition k_parity (first : nat) (others : list nat) (s : sop) : sop :=
  let bit (place : nat) := fetch (integer place) s in
  Binary Modulo
    (Unary Round (fold_left (fun sum place => Binary Add sum (bit place)) others (bit first)))
    (integer 2).

(** ** The layout of arrays (Proposition 1D) *)

(** The position of an entry, row-major: the sizes, then the index, outermost first. *)
Fixpoint prop (shape index : list nat) : nat :=
  match shape, index with
  | _ :: sizes, i :: rest => (i * fold_right Nat.mul 1 sizes + prop sizes rest)%nat
  | _, _ => 0%nat
  end.
Fixpoint unprop (shape : list nat) (position : nat) : list nat :=
  match shape with
  | [] => []
  | _ :: sizes =>
      let size := fold_right Nat.mul 1%nat sizes in
      (position / size)%nat :: unprop sizes (position mod size)
  end.

Definition below (shape index : list nat) : Prop := Forall2 (fun i m => (i < m)%nat) index shape.

Lemma prop_below shape index : below shape index -> (prop shape index < fold_right Nat.mul 1 shape)%nat.
Proof.
  intros B. induction B as [|i m index shape L B IH]; simpl; [lia|]. nia.
Qed.

(** A bijection between the indices of an array and the positions 0 … m₀m₁…−1. *)
Theorem prop_bijection shape :
  (forall index, below shape index ->
     (prop shape index < fold_right Nat.mul 1 shape)%nat /\ unprop shape (prop shape index) = index) /\
  (forall position, (position < fold_right Nat.mul 1 shape)%nat ->
     below shape (unprop shape position) /\ prop shape (unprop shape position) = position).
Proof.
  split.
  - intros index B. split; [now apply prop_below|].
    induction B as [|i m index shape L B IH]; simpl; [reflexivity|].
    pose proof (prop_below shape index B) as P.
    destruct (divmod i (prop shape index) _ P) as [-> ->]. now rewrite IH.
  - induction shape as [|m shape IH]; intros position P; simpl in *.
    + split; [constructor|lia].
    + set (size := fold_right Nat.mul 1%nat shape) in *.
      assert (S0 : (0 < size)%nat) by (destruct size; lia).
      destruct (IH (position mod size)) as [B E]; [apply Nat.mod_upper_bound; lia|]. split.
      * constructor; [apply Nat.div_lt_upper_bound; lia|exact B].
      * rewrite E, Nat.mul_comm. symmetry. apply Nat.div_mod. lia.
Qed.

(** ** Meaning *)

Lemma floor_integer r z : IZR z <= r -> r < IZR z + 1 -> floor r = IZR z.
Proof.
  intros A B. unfold floor, Int_part.
  rewrite <- (tech_up r (z + 1)); rewrite ?plus_IZR; try lra. f_equal. lia.
Qed.
Lemma floor_quotient_integer a b : (0 < b)%Z -> floor (IZR a / IZR b) = IZR (a / b).
Proof.
  intros B. assert (0 < IZR b) by (apply IZR_lt; lia).
  pose proof (Z.div_mod a b ltac:(lia)) as D. pose proof (Z.mod_pos_bound a b B) as [M1 M2].
  assert (E : IZR a = IZR b * IZR (a / b) + IZR (a mod b))
    by (rewrite <- mult_IZR, <- plus_IZR; now f_equal).
  apply IZR_le in M1. apply IZR_lt in M2. apply floor_integer.
  - apply Rmult_le_reg_r with (IZR b); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
  - apply Rmult_lt_reg_r with (IZR b); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.
Lemma modulo_integer a b : (0 < b)%Z -> IZR a - IZR b * floor (IZR a / IZR b) = IZR (a mod b).
Proof.
  intros B. rewrite floor_quotient_integer by exact B. rewrite <- mult_IZR, <- minus_IZR.
  f_equal. rewrite Z.mod_eq by lia. lia.
Qed.
Lemma nearest_nat n : nearest (INR n) = INR n.
Proof.
  unfold nearest. assert (E : Int_part (INR n + / 2) = Z.of_nat n).
  { unfold Int_part. rewrite <- (tech_up (INR n + / 2) (Z.of_nat n + 1)); [lia| |];
      rewrite plus_IZR, <- INR_IZR_INZ; lra. }
  rewrite E, <- INR_IZR_INZ. destruct (Req_EM_T (INR n + / 2) (INR n)); [lra|reflexivity].
Qed.

Section Sequences.
  Variable N : nat.
  Variable tokens : nat -> value.
  Notation gives := (gives N tokens).
  Notation index := (index N tokens).

  Theorem identify_correct e start count s f : gives e s f ->
    gives e (identify start count s)
      (fun q => if Nat.leb start q && Nat.ltb q (start + count) then f q else 0).
  Proof.
    intros F. pose proof (gives_indices N tokens e) as II.
    eapply gives_ext; [|apply gives_aggregate; [apply selects_and; [apply selects_and|]|exact F]];
      [|apply (selects_equal N tokens e _ _ _ _ II II)|apply selects_real; [exact II|apply (index_constant N tokens e start)]|
        apply (selects_less N tokens e _ _ _ _ II (index_constant N tokens e (start + count)))].
    intros q Q. cbv beta.
    set (P := Nat.leb start q && Nat.ltb q (start + count)).
    replace (selected N _ q) with (if P then selected N (fun q k => Nat.eqb k q) q else []).
    - destruct P.
      + rewrite (selected_one N (fun q => q) q Q). unfold mean; simpl. lra.
      + unfold mean; simpl. unfold Rdiv. apply Rmult_0_l.
    - unfold P. rewrite andb_comm. destruct (Nat.ltb q (start + count) && Nat.leb start q) eqn:E.
      + apply selected_ext. intros k K. destruct (Nat.eqb_spec k q) as [->|]; [|reflexivity].
        apply andb_true_iff in E. destruct E as [-> E]. apply Nat.leb_le in E. unfold compare.
        destruct (Rge_dec (INR q) (INR start)) as [|n]; [reflexivity|].
        exfalso. apply n. now apply Rle_ge, le_INR.
      + symmetry. apply filter_none. intros k K. destruct (Nat.eqb_spec k q) as [->|]; [|reflexivity].
        apply andb_false_iff in E. destruct E as [->|E]; [apply andb_false_r|].
        apply Nat.leb_gt in E. unfold compare. destruct (Rge_dec (INR q) (INR start)) as [G|]; [|reflexivity].
        apply Rge_le, INR_le in G. lia.
  Qed.

  Lemma index_length e : index e Length (fun _ => N).
  Proof. eexists; split; [reflexivity|reflexivity]. Qed.

  Theorem shift_correct e by_ s f : gives e s f ->
    gives e (shift by_ s) (fun q => f ((q + by_) mod N)%nat).
  Proof.
    intros F. apply (gives_fetch N tokens e _ s (fun q => (q + by_) mod N)%nat); [|exact F|].
    - apply index_modulo; [|apply index_length|intros; lia].
      apply index_add; [apply gives_indices|apply index_constant].
    - intros q Q. apply Nat.mod_upper_bound. lia.
  Qed.
  Theorem rotate_correct e by_ n s f : (0 < n)%nat -> (n <= N)%nat -> gives e s f ->
    gives e (rotate by_ n s) (fun q => f ((q + by_) mod n)%nat).
  Proof.
    intros N0 L F. apply (gives_fetch N tokens e _ s (fun q => (q + by_) mod n)%nat); [|exact F|].
    - apply index_modulo; [|apply index_constant|auto].
      apply index_add; [apply gives_indices|apply index_constant].
    - intros q Q. pose proof (Nat.mod_upper_bound (q + by_) n ltac:(lia)). lia.
  Qed.

  Theorem all_sum_correct e r c s f : (r * c <= N)%nat -> gives e s f ->
    gives e (all_sum r c s) (fun q => sum (r * c) f).
  Proof.
    intros RC F.
    assert (P : forall q, selected N (fun q k => Nat.ltb k (r * c)) q = seq 0 (r * c)).
    { intros q. pose proof (selected_first N (r * c) 0 0 RC) as H. simpl in H. rewrite <- H.
      apply selected_at. intros k K. simpl. now rewrite andb_true_r. }
    eapply gives_ext; [|apply (summed_by_correct N tokens e (r * c) _ s (fun q k => Nat.ltb k (r * c)) f); [|exact F|]].
    - intros q Q. cbv beta. rewrite P.
      pose proof (total_map f 0 (r * c)) as T. simpl in T. rewrite map_id in T. exact T.
    - apply selects_less; [apply gives_indices|apply index_constant].
    - intros q Q. now rewrite P, seq_length.
  Qed.

  Lemma gives_integers e op a b x y z : gives e a (fun q => IZR (x q)) -> gives e b (fun q => IZR (y q)) ->
    (forall q, apply2 op (Num (IZR (x q))) (Num (IZR (y q))) = Some (Num (IZR (z q)))) ->
    gives e (Binary op a b) (fun q => IZR (z q)).
  Proof. intros A B H. exact (gives_binary N tokens e op a b _ _ _ A B (fun q _ => H q)). Qed.

  Lemma gives_indicator e a b : says N tokens e a b ->
    gives e (Unary Indicator a) (fun q => if b q then 1 else 0).
  Proof.
    intros [v [E V]]. unfold Reasoning.gives. cbn [eval]. rewrite E.
    destruct (everywhere_some _ N (fun q => apply1 Indicator (v q)) (Num 0)
      (fun q => Num (if b q then 1 else 0))) as [u [D U]]; [|exists u; auto].
    intros q Q. now rewrite V by exact Q.
  Qed.

  (** Match₂ on integers, corrected: 1 if the sum with some token is 0 modulo p. *)
  Theorem match2_correct e p s (x : nat -> Z) : (0 < p)%nat -> gives e s (fun q => IZR (x q)) ->
    gives e (match2 p s)
      (fun q => if existsb (fun k => Z.eqb ((x k + x q) mod Z.of_nat p) 0) (seq 0 N) then 1 else 0).
  Proof.
    intros P0 F. set (P := Z.of_nat p). assert (PP : (0 < P)%Z) by (unfold P; lia).
    assert (GP : gives e (integer p) (fun _ => IZR P)) by apply (gives_integer N tokens e P).
    assert (MOD : forall a f, gives e a (fun q => IZR (f q)) ->
      gives e (Binary Modulo a (integer p)) (fun q => IZR (f q mod P))).
    { intros a f A. apply (gives_integers e Modulo a _ f (fun _ => P)); auto. intros q.
      unfold apply2, number. destruct (Req_EM_T (IZR P) 0) as [Z|_]; [apply eq_IZR in Z; lia|].
      now rewrite modulo_integer. }
    set (partner := fun q k => Z.eqb (x k mod P) ((P - x q mod P) mod P)).
    assert (S : selects N tokens e (Select Eq (Binary Modulo s (integer p))
      (Binary Modulo (Binary Subtract (integer p) (Binary Modulo s (integer p))) (integer p))) partner).
    { eapply selects_ext; [|apply selects_real; [exact (MOD s x F)|apply (MOD _ (fun q => P - x q mod P)%Z)]].
      - intros q k Q K. unfold partner, compare. destruct (Z.eqb_spec (x k mod P) ((P - x q mod P) mod P)) as [E|E],
          (Req_EM_T (IZR (x k mod P)) (IZR ((P - x q mod P) mod P))) as [E'|E']; auto; exfalso.
        + apply E'. now rewrite E.
        + apply E. now apply eq_IZR.
      - apply (gives_integers e Subtract _ _ (fun _ => P) (fun q => x q mod P)%Z); auto.
        intros q. unfold apply2, number. now rewrite minus_IZR. }
    set (some := fun q => existsb (fun k => Z.eqb ((x k + x q) mod P) 0) (seq 0 N)).
    assert (A : gives e (Aggregate (Select Eq (Binary Modulo s (integer p))
      (Binary Modulo (Binary Subtract (integer p) (Binary Modulo s (integer p))) (integer p)))
      (integer 1) (Integer 0)) (fun q => if some q then 1 else 0)).
    { eapply gives_ext; [|exact (gives_aggregate N tokens e _ _ _ _ S (gives_integer N tokens e 1))].
      intros q Q. cbv beta.
      assert (SAME : forall k, partner q k = Z.eqb ((x k + x q) mod P) 0).
      { intros k. unfold partner.
        pose proof (Z.mod_pos_bound (x k) P PP). pose proof (Z.mod_pos_bound (x q) P PP).
        rewrite (Z.add_mod (x k) (x q)) by lia.
        set (a := (x k mod P)%Z) in *. set (b := (x q mod P)%Z) in *.
        destruct (Z.eq_dec b 0) as [->|B].
        - rewrite Z.sub_0_r, Z_mod_same_full, Z.add_0_r, (Z.mod_small a) by lia. reflexivity.
        - rewrite (Z.mod_small (P - b)) by lia.
          destruct (Z.eqb_spec a (P - b)), (Z.eqb_spec ((a + b) mod P) 0) as [E|E]; auto; exfalso.
          + apply E. replace (a + b)%Z with P by lia. apply Z_mod_same_full.
          + apply n. destruct (Z.lt_ge_cases (a + b) P) as [L|L].
            * rewrite Z.mod_small in E by lia. lia.
            * assert (D : ((a + b) mod P = a + b - P)%Z)
                by (symmetry; apply Zmod_unique with 1%Z; lia). lia. }
      unfold selected. rewrite (filter_ext (partner q) _ SAME). unfold some.
      generalize (seq 0 N). intros l. set (h := fun k => Z.eqb ((x k + x q) mod P) 0).
      assert (ONES : forall l, filter h l <> [] -> mean (map (fun _ => 1) (filter h l)) = 1).
      { intros l0 NE. unfold mean. rewrite map_length.
        assert (T : forall m : list nat, total (map (fun _ => 1) m) = INR (length m)).
        { induction m; [reflexivity|]. cbn [map total length]. rewrite IHm, S_INR. lra. }
        rewrite T. unfold Rdiv. apply Rinv_r. apply not_0_INR. destruct (filter h l0); simpl; congruence. }
      destruct (existsb h l) eqn:E.
      - apply ONES. apply existsb_exists in E. destruct E as [k [K1 K2]]. intros Z.
        assert (In k (filter h l)) by (apply filter_In; auto). rewrite Z in H. destruct H.
      - replace (filter h l) with (@nil nat); [unfold mean; simpl; unfold Rdiv; lra|].
        symmetry. apply filter_none. intros k K. destruct (h k) eqn:HK; [|reflexivity].
        exfalso. assert (existsb h l = true) by (apply existsb_exists; eauto). congruence. }
    eapply gives_ext; [|apply gives_indicator; exact (says_compare N tokens e Gt _ _ _ _ A (gives_integer N tokens e 0))].
    intros q Q. cbv beta. unfold compare, some. destruct (existsb _ _); destruct (Rgt_dec _ 0); auto; lra.
  Qed.

  (** k-PARITY on bits, or any natural numbers: the parity of the sum. Missing positions count as 0.
      *)
  Theorem k_parity_correct e first others s (b : nat -> nat) : index e s b ->
    index e (k_parity first others s)
      (fun q => fold_left (fun n place => n + (if Nat.ltb place N then b place else 0)) others
                  (if Nat.ltb first N then b first else 0) mod 2)%nat.
  Proof.
    intros F. unfold k_parity.
    assert (BIT : forall place, index e (fetch (integer place) s)
      (fun _ => if Nat.ltb place N then b place else 0%nat)).
    { intros place. eapply gives_ext; [|exact (gives_fetch_or N tokens e _ s (fun _ => place) _
        (index_constant N tokens e place) F)].
      intros q Q. cbv beta. now destruct (Nat.ltb place N). }
    apply index_modulo; [|apply (index_constant N tokens e 2)|intros; lia].
    assert (FOLD : forall others acc n, index e acc (fun _ => n) ->
      index e (fold_left (fun sum place => Binary Add sum (fetch (integer place) s)) others acc)
        (fun _ => fold_left (fun n place => n + (if Nat.ltb place N then b place else 0))%nat others n)).
    { induction others0 as [|p ps IH]; intros acc n A; [exact A|]. simpl. apply IH.
      apply (index_add N tokens e acc _ (fun _ => n)); [exact A|apply BIT]. }
    eapply (gives_unary N tokens e Round); [exact (FOLD others _ _ (BIT first))|].
    intros q Q. unfold apply1, number. now rewrite nearest_nat.
  Qed.
End Sequences.
