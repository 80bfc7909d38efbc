(** * The entry of a matrix at a position, and sums over the positions of a line

    The lemma [entries_correct]: for a matrix with [laid m], [entries m] returns the row and the column
    of the entry at each position, and −1 at positions without an entry. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Products Masks.
Open Scope R_scope.

(** ** Program *)

Definition minus_one : sop := Constant (Integer (-1)).

(** Row and column of the entry at each position; −1 at positions without an entry. *)
Definition straight_entries (off : place) (r c rs cs : nat) : sop * sop :=
  let within := Binary Subtract Indices (sop_of off) in
  let row := Binary FloorDivide within (integer rs) in
  let rest := Binary Modulo within (integer rs) in
  let column := if Nat.ltb 1 cs then Binary FloorDivide rest (integer cs) else rest in
  let there :=
    Binary And
      (Binary And (Binary (Compare Ge) within (integer 0)) (Binary (Compare Lt) row (integer r)))
      (Binary (Compare Lt) column (integer c)) in
  let there :=
    if Nat.ltb 1 cs
    then Binary And there (Binary (Compare Eq) (Binary Modulo rest (integer cs)) (integer 0))
    else there in
  (IfElse there row minus_one, IfElse there column minus_one).

Definition crosswise (m : matrix) : bool :=
  Nat.ltb 1 (columns m) && (Nat.eqb (rows m) 1 || Nat.ltb (row_stride m) (column_stride m)).
Definition entries (m : matrix) : sop * sop :=
  if crosswise m
  then let (c, r) := straight_entries (offset m) (columns m) (rows m)
                       (Nat.max (column_stride m) 1) (row_stride m) in (r, c)
  else straight_entries (offset m) (rows m) (columns m) (Nat.max (row_stride m) 1) (column_stride m).

(** ** Meaning *)

(** Each row ends before the next row begins, or each column if [crosswise m]. No two entries then have
    the same position. *)
Definition laid (m : matrix) : Prop :=
  (0 < row_stride m)%nat /\ (0 < column_stride m)%nat /\
  if crosswise m then ((rows m - 1) * row_stride m < column_stride m)%nat
  else ((columns m - 1) * column_stride m < row_stride m)%nat.

Lemma laid_row_major s r c o : (0 < r)%nat -> (0 < c)%nat ->
  laid (View s r c o c 1) /\ laid (transposed (View s r c o c 1)).
Proof.
  intros R C. unfold laid, crosswise; simpl.
  destruct (Nat.ltb_spec 1 c), (Nat.eqb_spec r 1), (Nat.ltb_spec c 1), (Nat.ltb_spec 1 r), (Nat.eqb_spec c 1);
    simpl; repeat split; lia.
Qed.

(** *** Sums over positions *)
Lemma sum_plus n f g : sum n (fun k => f k + g k) = sum n f + sum n g.
Proof. induction n; simpl; [lra|]. rewrite IHn. lra. Qed.

Lemma sum_swap m n f : sum m (fun i => sum n (f i)) = sum n (fun j => sum m (fun i => f i j)).
Proof. induction m; simpl; [now rewrite sum_zero|]. now rewrite IHm, sum_plus. Qed.

Lemma sum_ones n : sum n (fun _ => 1) = INR n.
Proof. induction n; [reflexivity|]. rewrite S_INR. simpl. now rewrite IHn. Qed.

Lemma total_app k l : total (k ++ l) = total k + total l.
Proof. induction k; simpl; [lra|]. rewrite IHk. lra. Qed.

Lemma total_selected N P F :
  total (map F (filter P (seq 0 N))) = sum N (fun q => if P q then F q else 0).
Proof.
  induction N; [reflexivity|]. replace (S N) with (N + 1)%nat at 1 by lia.
  rewrite seq_app, filter_app, map_app, total_app, IHN. simpl. destruct (P N); simpl; lra.
Qed.

Lemma length_selected N P : INR (length (filter P (seq 0 N))) = sum N (fun q => if P q then 1 else 0).
Proof.
  rewrite <- total_selected with (F := fun _ => 1).
  generalize (filter P (seq 0 N)). induction l; [reflexivity|]. cbn [length map total].
  rewrite S_INR, IHl. lra.
Qed.

(** The positions of a line are its k places, each exactly once. *)
Lemma sum_line N k (P : nat -> bool) (alpha col : nat -> nat) F :
  (forall q, P q = true -> (col q < k)%nat /\ alpha (col q) = q) ->
  (forall t, (t < k)%nat -> P (alpha t) = true /\ col (alpha t) = t /\ (alpha t < N)%nat) ->
  sum N (fun q => if P q then F q else 0) = sum k (fun t => F (alpha t)).
Proof.
  intros A B.
  transitivity (sum k (fun t => sum N (fun q => if Nat.eqb q (alpha t) then F q else 0))).
  - rewrite sum_swap. apply sum_ext. intros q Q. destruct (P q) eqn:E.
    + destruct (A q E) as [C D].
      transitivity (sum k (fun t => if Nat.eqb t (col q) then F q else 0));
        [symmetry; exact (sum_one k (col q) (fun _ => F q) C)|].
      apply sum_ext. intros t T.
      replace (Nat.eqb q (alpha t)) with (Nat.eqb t (col q)); [reflexivity|].
      destruct (Nat.eqb_spec t (col q)) as [E1|H], (Nat.eqb_spec q (alpha t)) as [H'|H']; auto; exfalso.
      * apply H'. now rewrite E1, D.
      * apply H. rewrite H'. symmetry. now apply B.
    + rewrite (sum_ext k _ (fun _ => 0)); [symmetry; apply sum_zero|]. intros t T.
      destruct (Nat.eqb_spec q (alpha t)) as [->|]; [|reflexivity].
      destruct (B t T) as [X _]. congruence.
  - apply sum_ext. intros t T. apply sum_one. now apply B.
Qed.

Section Lines.
  Variable N : nat.
  Variable tokens : nat -> value.
  Variable context : environment -> Prop.
  Notation gives := (gives N tokens).
  Notation index := (index N tokens).
  Notation says := (says N tokens).
  Notation holds := (holds N tokens context).

  Lemma modulo_real a b : (0 < b)%nat -> INR a - INR b * floor (INR a / INR b) = INR (a mod b).
  Proof.
    intros B. rewrite floor_quotient by exact B. rewrite (Nat.div_mod a b) at 1 by lia.
    rewrite plus_INR, mult_INR. lra.
  Qed.

  Lemma gives_floor_divide e a b f g : gives e a f -> gives e b g -> (forall q, (q < N)%nat -> g q <> 0) ->
    gives e (Binary FloorDivide a b) (fun q => floor (f q / g q)).
  Proof.
    intros A B H. apply (gives_binary N tokens e FloorDivide a b f g); auto. intros q Q.
    unfold apply2, number. destruct (Req_EM_T (g q) 0) as [Z|_]; [now destruct (H q Q)|reflexivity].
  Qed.
  Lemma gives_modulo e a b f g : gives e a f -> gives e b g -> (forall q, (q < N)%nat -> g q <> 0) ->
    gives e (Binary Modulo a b) (fun q => f q - g q * floor (f q / g q)).
  Proof.
    intros A B H. apply (gives_binary N tokens e Modulo a b f g); auto. intros q Q.
    unfold apply2, number. destruct (Req_EM_T (g q) 0) as [Z|_]; [now destruct (H q Q)|reflexivity].
  Qed.

  Definition there (o r c rs cs q : nat) : bool :=
    Nat.leb o q && Nat.ltb ((q - o) / rs) r && Nat.ltb ((q - o) mod rs / cs) c
    && Nat.eqb ((q - o) mod rs mod cs) 0.

  Lemma straight_correct e off r c rs cs o :
    index e (sop_of off) (fun _ => o) -> (0 < rs)%nat -> (0 < cs)%nat ->
    gives e (fst (straight_entries off r c rs cs))
      (fun q => if there o r c rs cs q then INR ((q - o) / rs) else -1) /\
    gives e (snd (straight_entries off r c rs cs))
      (fun q => if there o r c rs cs q then INR ((q - o) mod rs / cs) else -1).
  Proof.
    intros O RS CS. set (W := fun q => INR q - INR o).
    assert (RS' : INR rs <> 0) by (apply not_0_INR; lia).
    assert (CS' : INR cs <> 0) by (apply not_0_INR; lia).
    pose proof (gives_subtract N tokens e _ _ _ _ (gives_indices N tokens e) O : gives e _ W) as GW.
    pose proof (gives_floor_divide e _ _ _ _ GW (index_constant N tokens e rs) ltac:(auto)) as GR.
    pose proof (gives_modulo e _ _ _ _ GW (index_constant N tokens e rs) ltac:(auto)) as GS.
    set (S := fun q => W q - INR rs * floor (W q / INR rs)) in GS.
    pose proof (gives_floor_divide e _ _ _ _ GS (index_constant N tokens e cs) ltac:(auto)) as GC.
    pose proof (gives_modulo e _ _ _ _ GS (index_constant N tokens e cs) ltac:(auto)) as GD.
    pose proof (says_compare N tokens e Ge _ _ _ _ GW (gives_integer N tokens e 0)) as S1.
    pose proof (says_compare N tokens e Lt _ _ _ _ GR (index_constant N tokens e r)) as S2.
    assert (WN : forall q, (o <= q)%nat -> W q = INR (q - o)) by (intros; unfold W; now rewrite minus_INR).
    assert (SN : forall q, (o <= q)%nat -> S q = INR ((q - o) mod rs))
      by (intros q L; unfold S; rewrite WN by exact L; now apply modulo_real).
    assert (GE : forall q, compare Ge (W q) 0 = Nat.leb o q).
    { intros q. unfold compare, W. destruct (Nat.leb_spec o q) as [L|L].
      - apply le_INR in L. destruct (Rge_dec (INR q - INR o) 0); [reflexivity|lra].
      - apply lt_INR in L. destruct (Rge_dec (INR q - INR o) 0); [lra|reflexivity]. }
    assert (BOTH : forall col C cond (K : nat -> bool),
      gives e col C -> says e cond K ->
      (forall q, (o <= q)%nat -> C q = INR ((q - o) mod rs / cs)) ->
      (forall q, K q = there o r c rs cs q) ->
      gives e (IfElse cond (Binary FloorDivide (Binary Subtract Indices (sop_of off)) (integer rs)) minus_one)
        (fun q => if there o r c rs cs q then INR ((q - o) / rs) else -1) /\
      gives e (IfElse cond col minus_one)
        (fun q => if there o r c rs cs q then INR ((q - o) mod rs / cs) else -1)).
    { intros col C cond K GCOL GK EC EK. split.
      - eapply gives_ext; [|apply gives_if; [exact GK|exact GR|apply (gives_integer N tokens e (-1))]].
        intros q Q. cbv beta. rewrite EK. destruct (there o r c rs cs q) eqn:T; [|reflexivity].
        unfold there in T. rewrite !andb_true_iff, Nat.leb_le in T.
        rewrite WN by tauto. now apply floor_quotient.
      - eapply gives_ext; [|apply gives_if; [exact GK|exact GCOL|apply (gives_integer N tokens e (-1))]].
        intros q Q. cbv beta. rewrite EK. destruct (there o r c rs cs q) eqn:T; [|reflexivity].
        unfold there in T. rewrite !andb_true_iff, Nat.leb_le in T. apply EC. tauto. }
    unfold straight_entries. destruct (Nat.ltb_spec 1 cs) as [L|L].
    - pose proof (says_compare N tokens e Lt _ _ _ _ GC (index_constant N tokens e c)) as S3.
      pose proof (says_compare N tokens e Eq _ _ _ _ GD (gives_integer N tokens e 0)) as S4.
      apply (BOTH _ (fun q => floor (S q / INR cs)) _ (fun q => compare Ge (W q) 0 &&
          compare Lt (floor (W q / INR rs)) (INR r) && compare Lt (floor (S q / INR cs)) (INR c) &&
          compare Eq (S q - INR cs * floor (S q / INR cs)) 0)); [exact GC| | |].
      + apply says_and; [apply says_and; [apply says_and|]|]; assumption.
      + intros q O'. rewrite SN by exact O'. now apply floor_quotient.
      + intros q. unfold there. rewrite GE. destruct (Nat.leb_spec o q) as [O'|_]; [|reflexivity].
        rewrite WN, SN by exact O'. rewrite !floor_quotient by assumption.
        rewrite !compare_less. f_equal. rewrite <- floor_quotient by exact CS.
        rewrite modulo_real by exact CS. apply (compare_equal _ 0).
    - assert (cs = 1%nat) by lia. subst cs.
      pose proof (says_compare N tokens e Lt _ _ _ _ GS (index_constant N tokens e c)) as S3.
      apply (BOTH _ S _ (fun q => compare Ge (W q) 0 &&
          compare Lt (floor (W q / INR rs)) (INR r) && compare Lt (S q) (INR c))); [exact GS| | |].
      + apply says_and; [apply says_and|]; assumption.
      + intros q O'. rewrite SN by exact O'. now rewrite Nat.div_1_r.
      + intros q. unfold there. rewrite GE. destruct (Nat.leb_spec o q) as [O'|_]; [|reflexivity].
        rewrite WN, SN by exact O'. rewrite floor_quotient by assumption.
        now rewrite !compare_less, Nat.div_1_r, Nat.mod_1_r, andb_true_r.
  Qed.

  Lemma there_entry o r c rs cs q : (0 < rs)%nat -> (0 < cs)%nat -> there o r c rs cs q = true ->
    ((q - o) / rs < r /\ (q - o) mod rs / cs < c /\
     o + (q - o) / rs * rs + (q - o) mod rs / cs * cs = q)%nat.
  Proof.
    intros RS CS T. unfold there in T. rewrite !andb_true_iff, Nat.leb_le, !Nat.ltb_lt, Nat.eqb_eq in T.
    destruct T as [[[A B] C] D]. pose proof (Nat.div_mod (q - o) rs ltac:(lia)).
    pose proof (Nat.div_mod ((q - o) mod rs) cs ltac:(lia)). repeat split; auto. lia.
  Qed.

  Lemma entry_there o r c rs cs i j : (0 < rs)%nat -> (0 < cs)%nat -> ((c - 1) * cs < rs)%nat ->
    (i < r)%nat -> (j < c)%nat ->
    let q := (o + i * rs + j * cs)%nat in
    there o r c rs cs q = true /\ ((q - o) / rs = i)%nat /\ ((q - o) mod rs / cs = j)%nat.
  Proof.
    intros RS CS L I J q. assert (W : (q - o = i * rs + j * cs)%nat) by (unfold q; lia).
    destruct (divmod i (j * cs) rs ltac:(nia)) as [D1 D2]. rewrite <- W in D1, D2.
    assert (D3 : (j * cs / cs = j)%nat) by (apply Nat.div_mul; lia).
    assert (D4 : (j * cs mod cs = 0)%nat) by (apply Nat.mod_mul; lia).
    unfold there. rewrite D1, D2, D3, D4. repeat split; auto.
    rewrite !andb_true_iff, Nat.leb_le, !Nat.ltb_lt, Nat.eqb_eq. repeat split; auto. unfold q; lia.
  Qed.

  (** The result of [entries], for every matrix with [laid m]. *)
  Lemma entries_correct m o : laid m ->
    exists (here : nat -> bool) (row col : nat -> nat),
      (forall e, index e (sop_of (offset m)) (fun _ => o) ->
         gives e (fst (entries m)) (fun q => if here q then INR (row q) else -1) /\
         gives e (snd (entries m)) (fun q => if here q then INR (col q) else -1)) /\
      (forall q, here q = true ->
         (row q < rows m)%nat /\ (col q < columns m)%nat /\ address m o (row q) (col q) = q) /\
      forall i j, (i < rows m)%nat -> (j < columns m)%nat ->
        here (address m o i j) = true /\ row (address m o i j) = i /\ col (address m o i j) = j.
  Proof.
    intros [RS [CS L]]. unfold entries, address.
    replace (Nat.max (column_stride m) 1) with (column_stride m) by lia.
    replace (Nat.max (row_stride m) 1) with (row_stride m) by lia.
    destruct (crosswise m).
    - exists (there o (columns m) (rows m) (column_stride m) (row_stride m)),
        (fun q => (q - o) mod column_stride m / row_stride m)%nat, (fun q => (q - o) / column_stride m)%nat.
      split; [|split].
      + intros e O. pose proof (straight_correct e (offset m) (columns m) (rows m) (column_stride m)
          (row_stride m) o O CS RS) as [G1 G2].
        destruct (straight_entries _ _ _ _ _) as [x y]. simpl in *. auto.
      + intros q T. destruct (there_entry _ _ _ _ _ _ CS RS T) as [A [B C]]. repeat split; auto. lia.
      + intros i j I J. pose proof (entry_there o (columns m) (rows m) (column_stride m) (row_stride m) j i
          CS RS L J I) as E. simpl in E.
        replace (o + i * row_stride m + j * column_stride m)%nat
          with (o + j * column_stride m + i * row_stride m)%nat by lia. tauto.
    - exists (there o (rows m) (columns m) (row_stride m) (column_stride m)),
        (fun q => (q - o) / row_stride m)%nat, (fun q => (q - o) mod row_stride m / column_stride m)%nat.
      split; [|split].
      + intros e O. now apply straight_correct.
      + intros q T. destruct (there_entry _ _ _ _ _ _ RS CS T) as [A [B C]]. auto.
      + intros i j I J. now apply entry_there.
  Qed.

  Lemma compare_or_none (b : bool) x y : compare Eq (if b then INR x else -1) (INR y) = b && Nat.eqb x y.
  Proof.
    destruct b; simpl andb; [apply compare_equal|]. unfold compare.
    destruct (Req_EM_T (-1) (INR y)) as [E|]; [|reflexivity]. pose proof (pos_INR y). lra.
  Qed.

  Lemma selects_or e a b m n :
    selects N tokens e a m -> selects N tokens e b n ->
    selects N tokens e (SelectorOr a b) (fun q k => m q k || n q k).
  Proof.
    intros [x [E X]] [y [F Y]]. unfold Reasoning.selects.
    change (select N tokens (SelectorOr a b) e) with
      (match select N tokens a e, select N tokens b e with
       | Some x, Some y => Some (fun i j => x i j || y i j) | _, _ => None end).
    rewrite E, F. eexists; split; [reflexivity|]. intros q k Q K. cbv beta. now rewrite X, Y.
  Qed.
  Lemma selects_real e p keys queries f g :
    gives e keys f -> gives e queries g ->
    selects N tokens e (Select p keys queries) (fun q k => compare p (f k) (g q)).
  Proof.
    intros [v [E V]] [w [F W]]. unfold Reasoning.selects. rewrite select_select, E, F.
    eexists; split; [reflexivity|]. intros q k Q K. cbv beta. now rewrite V, W.
  Qed.
End Lines.
