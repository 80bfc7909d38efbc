(** * The matrix product with tiles (recipe tiled), for all shapes

    Group g of k positions computes an α×β tile of the result with α + β fetching heads, and one head
    adds the products. The theorem, [tiled_matmul_correct], holds for every size of the tiles. [tile r
    c] is the size that the program uses: the smallest α + β such that r + c groups contain all tiles.
    [tiled_U_simulates] is Theorem 1 for U with tiles. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Products Masks Universal Heads.
Open Scope R_scope.

(** ** Program *)

Definition ceiling (a b : nat) : nat := ((a + b - 1) / b)%nat.

(** A row (or column) of a tile, out of [count]. Beyond the last row, the last row is repeated. *)
Definition tiles_entry (tile : sop) (size : nat) (f : family) (count : nat) : place :=
  let e := plus (times (At tile) (Int size)) (At (Head f)) in
  if Nat.eqb (count mod size) 0 then e else At (Binary Minimum (sop_of e) (integer (count - 1))).

Definition tiled_matmul (h tall wide : nat) (a b : matrix) : matrix :=
  let r := rows a in
  let k := columns a in
  let c := columns b in
  let across := ceiling c wide in
  let tiles := (ceiling r tall * across)%nat in
  let u := Family h 0 tall in
  let v := Family h 1 wide in
  let t := column_index k in
  let group := row_index k in
  let mine := IfElse (Binary (Compare Lt) group (integer tiles)) group (integer 0) in
  let row := entry a (tiles_entry (Binary FloorDivide mine (integer across)) tall u r) (At t) in
  let column := entry b (At t) (tiles_entry (Binary Modulo mine (integer across)) wide v c) in
  let i := row_index c in
  let j := column_index c in
  let its_group := sop_of (plus (times (At (Binary FloorDivide i (integer tall))) (Int across))
                             (At (Binary FloorDivide j (integer wide)))) in
  let factor :=
    IfElse
      (Binary And
         (Binary And (inside r c) (Binary (Compare Eq) (Binary Modulo i (integer tall)) (Head u)))
         (Binary (Compare Eq) (Binary Modulo j (integer wide)) (Head v)))
      (integer k) (integer 0) in
  row_major
    (SumOver
       (Binary Multiply factor
          (Aggregate (Select Eq group (IfElse (inside r c) its_group (integer 0)))
             (Binary Multiply row column) (Integer 0)))
       [u; v])
    r c.

(** The tile with the fewest heads; among several such tiles, the lowest. *)
Definition fits (r c : nat) (p : nat * nat) : bool :=
  Nat.leb (ceiling r (fst p) * ceiling c (snd p)) (r + c).
Definition better (p q : nat * nat) : bool :=
  let a := (fst p + snd p)%nat in
  let b := (fst q + snd q)%nat in
  Nat.ltb a b || (Nat.eqb a b && Nat.ltb (fst p) (fst q)).
Definition tile (r c : nat) : nat * nat :=
  fold_left (fun best p => if fits r c p && better p best then p else best)
    (list_prod (seq 1 r) (seq 1 c)) (r, c).
Definition best_tiled_matmul (h : nat) (a b : matrix) : matrix :=
  tiled_matmul h (fst (tile (rows a) (columns b))) (snd (tile (rows a) (columns b))) a b.

(** ** Meaning *)

Lemma tile_positive r c : (0 < r)%nat -> (0 < c)%nat -> (0 < fst (tile r c) /\ 0 < snd (tile r c))%nat.
Proof.
  intros R0 C0. unfold tile.
  assert (G : forall l best, (forall p, In p l -> (0 < fst p /\ 0 < snd p)%nat) ->
    (0 < fst best /\ 0 < snd best)%nat ->
    let b := fold_left (fun best p => if fits r c p && better p best then p else best) l best in
    (0 < fst b /\ 0 < snd b)%nat).
  { induction l as [|p l IH]; intros best A B; [exact B|]. simpl. apply IH.
    - intros; apply A; now right.
    - destruct (fits r c p && better p best); [apply A; now left|exact B]. }
  apply G; [|simpl; lia]. intros [a b] I. apply in_prod_iff in I. rewrite !in_seq in I. simpl. lia.
Qed.

Lemma sum_pair m n a b (F : nat -> nat -> R) : (a < m)%nat -> (b < n)%nat ->
  sum m (fun u => sum n (fun v => if Nat.eqb a u && Nat.eqb b v then F u v else 0)) = F a b.
Proof.
  intros A B. rewrite <- (sum_one m a (fun u => F u b) A). apply sum_ext. intros u U.
  destruct (Nat.eqb_spec u a) as [->|D].
  - rewrite <- (sum_one n b (fun v => F a v) B). apply sum_ext. intros v V.
    now rewrite Nat.eqb_refl, (Nat.eqb_sym b v).
  - rewrite (sum_ext n _ (fun _ => 0)); [apply sum_zero|]. intros v V.
    now rewrite (proj2 (Nat.eqb_neq a u)) by auto.
Qed.

Lemma below_ceiling a b i : (0 < b)%nat -> (i < a)%nat -> (i / b < ceiling a b)%nat.
Proof.
  intros B I. unfold ceiling. apply Nat.div_le_lower_bound; [lia|].
  pose proof (Nat.mul_div_le i b ltac:(lia)). lia.
Qed.

Section Tiled.
  Variable N : nat.
  Variable tokens : nat -> value.
  Variable context : environment -> Prop.
  Notation gives := (gives N tokens).
  Notation index := (index N tokens).
  Notation holds := (holds N tokens context).

  Lemma index_minimum e a b f g : index e a f -> index e b g ->
    index e (Binary Minimum a b) (fun q => Nat.min (f q) (g q)).
  Proof.
    intros A B. apply (gives_binary N tokens e Minimum a b _ _ _ A B). intros q Q.
    unfold apply2, number. destruct (Rlt_dec (INR (f q)) (INR (g q))) as [L|L].
    - apply INR_lt in L. now rewrite Nat.min_l by lia.
    - rewrite Nat.min_r; [reflexivity|]. destruct (Nat.le_gt_cases (g q) (f q)) as [C|C]; [exact C|].
      exfalso. now apply L, lt_INR.
  Qed.

  (** Lemma matmul with tiles of every size, for all shapes. *)
  Theorem tiled_matmul_correct h tall wide a b A B :
    (0 < tall)%nat -> (0 < wide)%nat ->
    (0 < rows a)%nat -> (0 < columns a)%nat -> (0 < columns b)%nat -> columns a = rows b ->
    (rows a * columns b <= N)%nat ->
    (ceiling (rows a) tall * ceiling (columns b) wide * columns a <= N)%nat -> keeps context h ->
    holds a A -> holds b B ->
    holds (tiled_matmul h tall wide a b) (dot (columns a) A B).
  Proof.
    intros T0 W0 R0 K0 C0 K RC ROOM KEEP [E0 [f [o [F [O FA]]]]] [_ [g [o' [G [O' GB]]]]].
    set (k := columns a) in *. set (r := rows a) in *. set (c := columns b) in *.
    set (across := ceiling c wide) in *. set (tiles := (ceiling r tall * across)%nat) in *.
    assert (X0 : (0 < across)%nat)
      by (unfold across, ceiling; apply Nat.div_str_pos; lia).
    set (mine := fun q => if Nat.ltb (q / k) tiles then (q / k)%nat else 0%nat).
    set (its := fun q => if Nat.ltb q (r * c)
                         then (q / c / tall * across + q mod c / wide)%nat else 0%nat).
    set (l := Family h 0 tall). set (m := Family h 1 wide).
    set (cap := fun v count z : nat => if Nat.eqb (count mod v) 0 then z else Nat.min z (count - 1)).
    set (mu := fun s q => cap tall r (mine q / across * tall + s)%nat).
    set (nu := fun t q => cap wide c (mine q mod across * wide + t)%nat).
    set (w := fun s t q =>
      (if Nat.ltb (address a o (mu s q) (q mod k)) N then f (address a o (mu s q) (q mod k)) else 0) *
      (if Nat.ltb (address b o' (q mod k) (nu t q)) N then g (address b o' (q mod k) (nu t q)) else 0)).
    set (part := fun s t q =>
      (if Nat.ltb q (r * c) && Nat.eqb (q / c mod tall) s && Nat.eqb (q mod c mod wide) t then INR k else 0) *
      mean (map (w s t) (selected N (fun q p => Nat.eqb (p / k) (its q)) q))).
    (* At the positions of a group, heads (s, t) contain the products of their entry. *)
    assert (W : forall i j p, (i < r)%nat -> (j < c)%nat -> (p < k)%nat ->
      w (i mod tall)%nat (j mod wide)%nat ((i / tall * across + j / wide) * k + p)%nat = A i p * B p j).
    { intros i j p I J P.
      set (big := (i / tall * across + j / wide)%nat).
      pose proof (below_ceiling r tall i T0 I) as BI. pose proof (below_ceiling c wide j W0 J) as BJ.
      fold across in BJ. destruct (divmod big p k P) as [D1 D2]. fold big.
      assert (BIG : (big < tiles)%nat) by (unfold big, tiles; nia).
      assert (MINE : mine (big * k + p)%nat = big).
      { unfold mine. rewrite D1. now rewrite (proj2 (Nat.ltb_lt _ _) BIG). }
      destruct (divmod (i / tall) (j / wide) across BJ) as [D3 D4].
      assert (MU : mu (i mod tall)%nat (big * k + p)%nat = i).
      { unfold mu. rewrite MINE. unfold big. rewrite D3.
        pose proof (Nat.div_mod i tall ltac:(lia)). unfold cap.
        destruct (Nat.eqb (r mod tall) 0); lia. }
      assert (NU : nu (j mod wide)%nat (big * k + p)%nat = j).
      { unfold nu. rewrite MINE. unfold big. rewrite D4.
        pose proof (Nat.div_mod j wide ltac:(lia)). unfold cap.
        destruct (Nat.eqb (c mod wide) 0); lia. }
      unfold w. rewrite D2, MU, NU. destruct (FA i p I P) as [L1 V1]. destruct (GB p j ltac:(lia) J) as [L2 V2].
      now rewrite (proj2 (Nat.ltb_lt _ _) L1), (proj2 (Nat.ltb_lt _ _) L2), V1, V2. }
    apply holds_compact. split; [exact E0|].
    exists (fun q => sum tall (fun s => sum wide (fun t => part s t q))). split.
    - intros e E. apply (gives_sum2 N tokens e _ l m part). intros s t S T.
      change (s < tall)%nat in S. change (t < wide)%nat in T.
      set (e' := bind (bind e l s) m t).
      assert (E' : context e') by (apply KEEP; [reflexivity|now apply KEEP]).
      assert (IL : index e' (Head l) (fun _ => s)).
      { eapply index_same; [|apply index_head]. intros q Q. unfold e', bind; simpl.
        now rewrite !Nat.eqb_refl. }
      assert (IM : index e' (Head m) (fun _ => t)) by apply index_bound.
      assert (IT : index e' (column_index k) (fun q => q mod k)%nat)
        by (apply index_mod; [exact K0|apply gives_indices]).
      assert (IG : index e' (row_index k) (fun q => q / k)%nat) by now apply index_row_index.
      assert (IMINE : index e' (IfElse (Binary (Compare Lt) (row_index k) (integer tiles))
                        (row_index k) (integer 0)) mine).
      { apply index_if; [apply says_less; [exact IG|apply index_constant]|exact IG|
          apply (index_constant N tokens e' 0)]. }
      assert (CAP : forall tile v fam count gg tt, index e' tile gg -> index e' (Head fam) (fun _ => tt) ->
        index e' (sop_of (tiles_entry tile v fam count)) (fun q => cap v count (gg q * v + tt)%nat)).
      { intros tile v fam count gg tt HG HT. unfold tiles_entry, cap.
        assert (P : index e' (sop_of (plus (times (At tile) (Int v)) (At (Head fam))))
                      (fun q => gg q * v + tt)%nat).
        { apply (index_plus N tokens e' _ _ (fun q => gg q * v)%nat (fun _ => tt)); [|exact HT].
          apply (index_times N tokens e' _ _ gg (fun _ => v)); [exact HG|apply index_int]. }
        destruct (Nat.eqb (count mod v) 0); [exact P|].
        apply index_minimum; [exact P|apply (index_constant N tokens e' (count - 1))]. }
      assert (II : index e' (row_index c) (fun q => q / c)%nat) by now apply index_row_index.
      assert (IJ : index e' (column_index c) (fun q => q mod c)%nat)
        by (apply index_mod; [exact C0|apply gives_indices]).
      apply gives_multiply.
      + eapply gives_ext; [|apply gives_if; [apply says_and; [apply says_and; [apply says_inside|
          apply (says_equal N tokens e' _ _ (fun q => (q / c) mod tall)%nat (fun _ => s)); [now apply index_mod|exact IL]]|
          apply (says_equal N tokens e' _ _ (fun q => (q mod c) mod wide)%nat (fun _ => t)); [now apply index_mod|exact IM]]|
          apply (index_constant N tokens e' k)|apply (gives_integer N tokens e' 0)]].
        intros q Q. reflexivity.
      + apply gives_aggregate; [apply selects_equal; [exact IG|]|apply gives_multiply].
        2:{ apply (gives_entry_or N tokens e' a _ _ o (mu s) (fun q => q mod k)%nat); auto.
            apply CAP; [|exact IL]. now apply index_div. }
        2:{ apply (gives_entry_or N tokens e' b _ _ o' (fun q => q mod k)%nat (nu t)); auto.
            apply CAP; [|exact IM]. now apply index_mod. }
        apply index_if; [apply says_inside| |apply (index_constant N tokens e' 0)].
        apply (index_plus N tokens e' _ _ (fun q => q / c / tall * across)%nat (fun q => q mod c / wide)%nat);
          [|now apply index_div].
        apply (index_times N tokens e' _ _ (fun q => q / c / tall)%nat (fun _ => across)); [|apply index_int].
        now apply index_div.
    - intros i j I J. assert (L : (i * c + j < r * c)%nat) by nia. split; [lia|]. fold c. cbv beta.
      destruct (divmod i j c J) as [D1 D2].
      set (big := (i / tall * across + j / wide)%nat).
      pose proof (below_ceiling r tall i T0 I) as BI. pose proof (below_ceiling c wide j W0 J) as BJ.
      fold across in BJ. assert (BIG : (big < tiles)%nat) by (unfold big, tiles; nia).
      rewrite <- (sum_pair tall wide (i mod tall) (j mod wide)
        (fun s t => dot k A B i j)) by (apply Nat.mod_upper_bound; lia).
      apply sum_ext. intros s S. apply sum_ext. intros t T. unfold part. rewrite D1, D2.
      rewrite (proj2 (Nat.ltb_lt _ _) L). simpl andb.
      destruct (Nat.eqb_spec (i mod tall) s) as [ES|]; [|simpl; lra].
      destruct (Nat.eqb_spec (j mod wide) t) as [ET|]; [|simpl; lra]. simpl andb. cbv iota.
      rewrite (selected_at N _ (in_row k) (i * c + j) (big * k)).
      + rewrite (row_sum N tiles k (big * k) (w s t) K0) by nia. unfold dot. apply sum_ext.
        intros p P. rewrite Nat.div_mul by lia. subst s t. now apply W.
      + intros p _. unfold in_row, its. rewrite (proj2 (Nat.ltb_lt _ _) L), D1, D2.
        now rewrite Nat.div_mul by lia.
  Qed.

  Theorem best_tiled_matmul_correct h a b A B :
    (0 < rows a)%nat -> (0 < columns a)%nat -> (0 < columns b)%nat -> columns a = rows b ->
    (rows a * columns b <= N)%nat ->
    (let t := tile (rows a) (columns b) in
     ceiling (rows a) (fst t) * ceiling (columns b) (snd t) * columns a <= N)%nat -> keeps context h ->
    holds a A -> holds b B ->
    holds (best_tiled_matmul h a b) (dot (columns a) A B).
  Proof.
    intros R0 K0 C0 K RC ROOM KEEP HA HB.
    destruct (tile_positive (rows a) (columns b) R0 C0). now apply tiled_matmul_correct.
  Qed.
End Tiled.

(** ** Theorem 1 with tiles *)
Definition tiled_U n d dv : sop :=
  let s := source (best_tiled_matmul 2 (best_tiled_matmul 1 (X n d) (A n d)) (transposed (X n d))) in
  source (best_tiled_matmul 3 (row_major (stable_softmax n n s) n n)
    (best_tiled_matmul 1 (X n d) (V n d dv))).

(** The number of positions of all groups of a product. *)
Definition tile_room r k c : nat :=
  let t := tile r c in (ceiling r (fst t) * ceiling c (snd t) * k)%nat.

Theorem tiled_U_simulates N n d dv tokens x a v :
  (0 < n /\ 0 < d /\ 0 < dv)%nat ->
  (n * d <= N /\ n * n <= N /\ n * dv <= N)%nat ->
  (tile_room n d d <= N /\ tile_room n d n <= N /\ tile_room n d dv <= N /\ tile_room n n dv <= N)%nat ->
  numbers N tokens ->
  tokens_hold N tokens n d 0 x -> tokens_hold N tokens d d (n * d) a ->
  tokens_hold N tokens d dv (n * d + d * d) v ->
  exists y, run N tokens (tiled_U n d dv) = Some y /\
    forall i j, (i < n)%nat -> (j < dv)%nat ->
      y (i * dv + j)%nat = Num (attention n d x a v i j).
Proof.
  intros [N0 [D0 V0]] [ND [NN NV]] [T1 [T2 [T3 T4]]] NUM TX TA TV.
  pose proof (closed_block N tokens NUM _ _ _ _ TX) as HX.
  pose proof (closed_block N tokens NUM _ _ _ _ TA) as HA.
  pose proof (closed_block N tokens NUM _ _ _ _ TV) as HV.
  apply run_of. unfold tiled_U.
  set (s := source (best_tiled_matmul 2 (best_tiled_matmul 1 (X n d) (A n d)) (transposed (X n d)))).
  assert (HS : holds N tokens closed (row_major s n n) (score d x a)).
  { apply (best_tiled_matmul_correct N tokens closed 2
      (best_tiled_matmul 1 (X n d) (A n d)) (transposed (X n d)) (dot d x a) (fun i j => x j i));
      simpl; auto using closed_keeps.
    - apply (best_tiled_matmul_correct N tokens closed 1 (X n d) (A n d)); simpl; auto using closed_keeps.
    - exact (transposed_correct N tokens closed (X n d) x HX). }
  apply (best_tiled_matmul_correct N tokens closed 3 (row_major (stable_softmax n n s) n n)
    (best_tiled_matmul 1 (X n d) (V n d dv))); simpl; auto using closed_keeps.
  - apply stable_softmax_correct; auto.
  - apply (best_tiled_matmul_correct N tokens closed 1 (X n d) (V n d dv)); simpl; auto using closed_keeps.
Qed.
