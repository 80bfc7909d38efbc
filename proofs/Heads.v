(** * Theorem H heads, and the multi-head lemma: one formula whose views depend on the head

    [heads_U n d dv H] and [projected_U n d dv p H] are programs that depend only on the sizes, and
    their length does not depend on H. The theorems are [heads_U_simulates] (H concatenated heads),
    [projected_U_simulates] (H heads through W_O), and [multihead_correct] (every operation, applied
    to H blocks). *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Products Masks Universal.
Open Scope R_scope.

(** ** Programs *)

(** The view of the block of head h. The blocks follow each other. *)
Definition moving (h : family) (r c first : nat) : matrix :=
  View Tokens r c (plus (Int first) (times (At (Head h)) (Int (r * c)))) c 1.

(** The concatenated results of all heads, r×(H·c), by an additional attention head. *)
Definition side_by_side (h : family) (r c : nat) (s : sop) : sop :=
  let w := (size h * c)%nat in
  let j := column_index w in
  IfElse (inside r w)
    (SumOver
       (IfElse (Binary (Compare Eq) (Binary FloorDivide j (integer c)) (Head h))
          (entry (row_major s r c) (At (row_index w)) (At (Binary Modulo j (integer c)))) (integer 0))
       [h])
    (integer 0).

(** The results of all heads one below the other, (H·r)×c. *)
Definition stacked (h : family) (m : matrix) : sop :=
  let r := rows m in
  let c := columns m in
  let local := Binary Modulo Indices (integer (r * c)) in
  SumOver
    (IfElse (Binary (Compare Eq) (Binary FloorDivide Indices (integer (r * c))) (Head h))
       (entry m (At (Binary FloorDivide local (integer c))) (At (Binary Modulo local (integer c))))
       (integer 0))
    [h].

(** ** U for H heads: X, then the A of all heads, then their V (then the W_O of all heads, d_v×p) *)
Definition one_head (h : family) (x : matrix) (first dv : nat) : matrix :=
  let d := columns x in
  attention_head 1 (inside (rows x) (rows x)) x (moving h d d first)
    (moving h d dv (first + size h * (d * d))).

Definition heads_U n d dv H : sop :=
  let h := Family 4 0 H in side_by_side h n dv (source (one_head h (X n d) (n * d) dv)).

(** Through W_O. The matrices of T begin at position [first]. *)
Definition projected (H : nat) (x : matrix) (first dv p : nat) : sop :=
  let h := Family 5 0 H in
  let d := columns x in
  SumOver
    (source (matmul 4 (one_head h x first dv)
       (moving h dv p (first + H * (d * d) + H * (d * dv))))) [h].

Definition projected_U n d dv p H : sop := projected H (X n d) (n * d) dv p.

(** ** Meaning *)

Lemma finite_choice {T} (H : nat) (P : nat -> T -> Prop) (default : T) :
  (forall s, (s < H)%nat -> exists t, P s t) -> exists f, forall s, (s < H)%nat -> P s (f s).
Proof.
  induction H as [|H IH]; intros E.
  - exists (fun _ => default). lia.
  - destruct IH as [f F]; [auto with arith|]. destruct (E H) as [t T0]; [lia|].
    exists (fun s => if Nat.eqb s H then t else f s). intros s S.
    destruct (Nat.eqb_spec s H) as [->|D]; [exact T0|apply F; lia].
Qed.

Section Heads.
  Variable N : nat.
  Variable tokens : nat -> value.
  Notation gives := (gives N tokens).
  Notation index := (index N tokens).
  Notation holds := (holds N tokens).

  Lemma says_equal e a b f g :
    index e a f -> index e b g ->
    says N tokens e (Binary (Compare Eq) a b) (fun q => Nat.eqb (f q) (g q)).
  Proof.
    intros A B. eapply says_ext; [|exact (says_compare N tokens e Eq a b _ _ A B)].
    intros q Q. apply compare_equal.
  Qed.

  Lemma in_head_bind g H e s : in_head g s (bind e (Family g 0 H) s).
  Proof. unfold in_head, bind; simpl. now rewrite Nat.eqb_refl. Qed.

  (** The results of all heads, as one function of the head. *)
  Lemma all_heads g H m (M : nat -> nat -> nat -> R) :
    (forall s, (s < H)%nat -> holds (in_head g s) m (M s)) ->
    exists f o, forall s, (s < H)%nat ->
      (forall e, in_head g s e -> gives e (source m) (f s)) /\
      (forall e, in_head g s e -> index e (sop_of (offset m)) (fun _ => o s)) /\
      forall i j, (i < rows m)%nat -> (j < columns m)%nat ->
        (address m (o s) i j < N)%nat /\ f s (address m (o s) i j) = M s i j.
  Proof.
    intros A.
    destruct (finite_choice H (fun s (p : (nat -> R) * nat) =>
      (forall e, in_head g s e -> gives e (source m) (fst p)) /\
      (forall e, in_head g s e -> index e (sop_of (offset m)) (fun _ => snd p)) /\
      forall i j, (i < rows m)%nat -> (j < columns m)%nat ->
        (address m (snd p) i j < N)%nat /\ fst p (address m (snd p) i j) = M s i j)
      (fun _ => 0, 0%nat)) as [p P].
    - intros s S. destruct (A s S) as [_ [f [o B]]]. now exists (f, o).
    - exists (fun s => fst (p s)), (fun s => snd (p s)). exact P.
  Qed.

  (** Each position receives the entry of one head, which equals the sum over all heads. *)
  Lemma gives_choice g H m M which i j w f k :
    (forall s, (s < H)%nat -> holds (in_head g s) m (M s)) ->
    (forall e, index e which w) -> (forall e, index e (sop_of i) f) -> (forall e, index e (sop_of j) k) ->
    exists y, (forall e, gives e (SumOver (IfElse (Binary (Compare Eq) which (Head (Family g 0 H)))
                (entry m i j) (integer 0)) [Family g 0 H]) y) /\
      forall q, (q < N)%nat -> (w q < H)%nat -> (f q < rows m)%nat -> (k q < columns m)%nat ->
        y q = M (w q) (f q) (k q).
  Proof.
    intros A W I J. destruct (all_heads g H m M A) as [v [o V]].
    set (part := fun s q => if Nat.eqb (w q) s then
      if Nat.ltb (address m (o s) (f q) (k q)) N then v s (address m (o s) (f q) (k q)) else 0 else 0).
    exists (fun q => sum H (fun s => part s q)). split.
    - intros e. apply (gives_sum N tokens e _ (Family g 0 H) part). simpl. intros s S.
      destruct (V s S) as [V1 [V2 _]]. pose proof (in_head_bind g H e s) as B.
      apply gives_if.
      + apply (says_equal _ _ _ w (fun _ => s)); [apply W|apply index_bound].
      + apply (gives_entry_or N tokens _ m i j (o s) f k); auto.
      + apply (gives_integer N tokens _ 0).
    - intros q Q L F K.
      transitivity (sum H (fun s => if Nat.eqb s (w q) then M s (f q) (k q) else 0));
        [|exact (sum_one H (w q) (fun s => M s (f q) (k q)) L)].
      apply sum_ext. intros s S. unfold part. rewrite Nat.eqb_sym.
      destruct (Nat.eqb_spec s (w q)) as [->|]; [|reflexivity].
      destruct (V _ S) as [_ [_ V3]]. destruct (V3 _ _ F K) as [B E].
      now rewrite (proj2 (Nat.ltb_lt _ _) B).
  Qed.

  Lemma index_mod e a f n : (0 < n)%nat -> index e a f ->
    index e (Binary Modulo a (integer n)) (fun q => f q mod n)%nat.
  Proof. intros C A. apply index_modulo; [exact A|apply index_constant|auto]. Qed.
  Lemma index_div e a f n : (0 < n)%nat -> index e a f ->
    index e (Binary FloorDivide a (integer n)) (fun q => f q / n)%nat.
  Proof. intros C A. apply index_floor_divide; [exact A|apply index_constant|auto]. Qed.

  (** Concatenated heads: column j belongs to head j / c. *)
  Theorem side_by_side_correct g H r c s M :
    (0 < c)%nat -> (0 < H)%nat -> (r * (H * c) <= N)%nat ->
    (forall t, (t < H)%nat -> holds (in_head g t) (row_major s r c) (M t)) ->
    holds closed (row_major (side_by_side (Family g 0 H) r c s) r (H * c))
      (fun i j => M (j / c)%nat i (j mod c)%nat).
  Proof.
    intros C0 H0 RC A. set (w := (H * c)%nat) in *. assert (W0 : (0 < w)%nat) by (unfold w; nia).
    set (col := fun q => (q mod w)%nat).
    assert (IC : forall e, index e (column_index w) col)
      by (intros; apply index_mod; [exact W0|apply gives_indices]).
    destruct (gives_choice g H (row_major s r c) M (Binary FloorDivide (column_index w) (integer c))
      (At (row_index w)) (At (Binary Modulo (column_index w) (integer c)))
      (fun q => col q / c)%nat (fun q => q / w)%nat (fun q => col q mod c)%nat A) as [y [G Y]].
    { intros; apply index_div; auto. }
    { intros; apply index_div; [exact W0|apply gives_indices]. }
    { intros; apply index_mod; auto. }
    apply holds_compact. split; [now exists (fun _ _ => 0%nat)|].
    exists (fun q => if Nat.ltb q (r * w) then y q else 0). split.
    - intros e _. apply gives_if; [apply says_inside|apply G|apply (gives_integer N tokens e 0)].
    - intros i j I J. assert (L : (i * w + j < r * w)%nat) by nia. split; [lia|].
      rewrite (proj2 (Nat.ltb_lt _ _) L). destruct (divmod i j w J) as [D1 D2].
      assert (D : (j / c < H)%nat) by (apply Nat.div_lt_upper_bound; unfold w in J; lia).
      rewrite Y; unfold col; rewrite ?D1, ?D2; simpl; auto; [lia|apply Nat.mod_upper_bound; lia].
  Qed.

  (** The sum of the heads. *)
  Theorem summed_heads_correct g H r c s M :
    (forall t, (t < H)%nat -> holds (in_head g t) (row_major s r c) (M t)) -> (0 < H)%nat ->
    holds closed (row_major (SumOver s [Family g 0 H]) r c) (fun i j => sum H (fun t => M t i j)).
  Proof.
    intros A H0. assert (B : forall t, (t < H)%nat -> exists f,
      (forall e, in_head g t e -> gives e s f) /\
      forall i j, (i < r)%nat -> (j < c)%nat -> (i * c + j < N)%nat /\ f (i * c + j)%nat = M t i j).
    { intros t T. specialize (A t T). apply holds_compact in A. apply A. }
    apply finite_choice in B; [|exact (fun _ => 0)]. destruct B as [f F].
    apply holds_compact. split; [now exists (fun _ _ => 0%nat)|].
    exists (fun q => sum H (fun t => f t q)). split.
    - intros e _. apply (gives_sum N tokens e s (Family g 0 H) f). simpl. intros t T.
      destruct (F t T) as [G _]. apply G, in_head_bind.
    - intros i j I J. destruct (F 0%nat H0) as [_ F0]. split; [now apply F0|].
      apply sum_ext. intros t T. destruct (F t T) as [_ V]. now apply V.
  Qed.

  (** Lemma multi-head: the results of an operation for each block, one below the other. *)
  Theorem multihead_correct g H m M :
    (0 < rows m)%nat -> (0 < columns m)%nat -> (0 < H)%nat -> (H * rows m * columns m <= N)%nat ->
    (forall t, (t < H)%nat -> holds (in_head g t) m (M t)) ->
    holds closed (row_major (stacked (Family g 0 H) m) (H * rows m) (columns m))
      (fun i j => M (i / rows m)%nat (i mod rows m)%nat j).
  Proof.
    intros R0 C0 H0 RC A. set (r := rows m) in *. set (c := columns m) in *.
    assert (P0 : (0 < r * c)%nat) by nia.
    destruct (gives_choice g H m M (Binary FloorDivide Indices (integer (r * c)))
      (At (Binary FloorDivide (Binary Modulo Indices (integer (r * c))) (integer c)))
      (At (Binary Modulo (Binary Modulo Indices (integer (r * c))) (integer c)))
      (fun q => q / (r * c))%nat (fun q => q mod (r * c) / c)%nat (fun q => (q mod (r * c)) mod c)%nat A)
      as [y [G Y]].
    { intros; apply index_div; [exact P0|apply gives_indices]. }
    { intros; apply index_div, index_mod; auto; apply gives_indices. }
    { intros; apply index_mod, index_mod; auto; apply gives_indices. }
    apply holds_compact. split; [now exists (fun _ _ => 0%nat)|]. exists y. split; [intros; apply G|].
    intros i j I J. assert (L : (i * c + j < N)%nat) by nia. split; [exact L|].
    assert (E : (i * c + j = i / r * (r * c) + (i mod r * c + j))%nat)
      by (rewrite (Nat.div_mod i r) at 1 by lia; nia).
    pose proof (Nat.mod_upper_bound i r ltac:(lia)) as B.
    destruct (divmod (i / r) (i mod r * c + j) (r * c) ltac:(nia)) as [D1 D2].
    rewrite <- E in D1, D2. destruct (divmod (i mod r) j c J) as [D3 D4].
    assert (D : (i / r < H)%nat) by (apply Nat.div_lt_upper_bound; lia).
    rewrite Y; rewrite ?D1, ?D2, ?D3, ?D4; auto.
  Qed.

  (** The view of head t's block, in head t. *)
  Lemma holds_moving g H r c first t M :
    numbers N tokens -> tokens_hold N tokens r c (first + t * (r * c)) M ->
    holds (in_head g t) (moving (Family g 0 H) r c first) M.
  Proof.
    intros NUM TH. apply (holds_block N tokens _ r c _ (first + t * (r * c))%nat M); auto.
    - now exists (fun _ _ => t).
    - intros e E. apply (index_plus N tokens e _ _ (fun _ => first) (fun _ => t * (r * c))%nat);
        [apply index_int|].
      apply (index_times N tokens e _ _ (fun _ => t) (fun _ => r * c)%nat); [|apply index_int].
      eapply index_same; [|apply index_head]. intros q Q. exact E.
  Qed.
End Heads.

(** Two operations of the paper on H blocks: transposition, and the product. *)
Theorem multihead_transpose_correct N tokens r c H (M : nat -> nat -> nat -> R) :
  (0 < r)%nat -> (0 < c)%nat -> (0 < H)%nat -> numbers N tokens ->
  (forall t, (t < H)%nat -> tokens_hold N tokens r c (t * (r * c)) (M t)) ->
  let h := Family 1 0 H in
  holds N tokens closed (row_major (stacked h (transposed (moving h r c 0))) (H * c) r)
    (fun i j => M (i / c)%nat j (i mod c)%nat).
Proof.
  intros R0 C0 H0 NUM T h.
  assert (L : (H * c * r <= N)%nat) by (destruct (T (H - 1)%nat ltac:(lia)) as [L _]; nia).
  apply (multihead_correct N tokens 1 H (transposed (moving h r c 0)) (fun t i j => M t j i)); simpl; auto.
  intros t LT. apply transposed_correct, holds_moving; simpl; auto.
Qed.

Theorem multihead_matmul_correct N tokens r k c H (A B : nat -> nat -> nat -> R) :
  (0 < r)%nat -> (0 < c)%nat -> (0 < H)%nat -> (H * (r * c) <= N)%nat -> numbers N tokens ->
  (forall t, (t < H)%nat -> tokens_hold N tokens r k (t * (r * k)) (A t)) ->
  (forall t, (t < H)%nat -> tokens_hold N tokens k c (H * (r * k) + t * (k * c)) (B t)) ->
  let h := Family 2 0 H in
  holds N tokens closed
    (row_major (stacked h (matmul 1 (moving h r k 0) (moving h k c (H * (r * k))))) (H * r) c)
    (fun i j => dot k (A (i / r)%nat) (B (i / r)%nat) (i mod r) j).
Proof.
  intros R0 C0 H0 RC NUM TA TB h.
  apply (multihead_correct N tokens 2 H (matmul 1 (moving h r k 0) (moving h k c (H * (r * k))))
    (fun t => dot k (A t) (B t))); simpl; auto; [nia|].
  intros t LT. apply (matmul_correct N tokens _ 1 (moving h r k 0)); simpl; auto; try nia.
  - apply in_head_keeps; lia.
  - apply holds_moving; simpl; auto.
  - apply holds_moving; simpl; auto.
Qed.

Section HeadsUniversal.
  Variables (N n d dv p H first : nat) (tokens : nat -> value) (mx : matrix).
  (** The matrices of each head. *)
  Variables (x : nat -> nat -> R) (a v o : nat -> nat -> nat -> R).
  Hypothesis shape : rows mx = n /\ columns mx = d.
  Hypothesis sizes : (0 < n /\ 0 < d /\ 0 < dv /\ 0 < H)%nat.
  Hypothesis room : (n * d <= N /\ n * n <= N /\ n * dv <= N)%nat.
  Hypothesis blanks : numbers N tokens.
  Hypothesis holds_X : holds N tokens closed mx x.
  Hypothesis tokens_A : forall t, (t < H)%nat -> tokens_hold N tokens d d (first + t * (d * d)) (a t).
  Hypothesis tokens_V : forall t, (t < H)%nat ->
    tokens_hold N tokens d dv (first + H * (d * d) + t * (d * dv)) (v t).

  Lemma one_head_correct g t : (t < H)%nat -> (3 < g)%nat ->
    holds N tokens (in_head g t)
      (row_major (source (one_head (Family g 0 H) mx first dv)) n dv) (attention n d x (a t) (v t)).
  Proof.
    intros T G. unfold one_head. destruct shape as [<- <-]. apply plain_head_correct; simpl; auto; try nia.
    - repeat split; apply in_head_keeps; lia.
    - apply closed_holds; [now exists (fun _ _ => t)|exact holds_X].
    - apply holds_moving; auto.
    - apply holds_moving; auto.
  Qed.

  Lemma holds_side_by_side : (n * (H * dv) <= N)%nat ->
    holds N tokens closed
      (row_major (side_by_side (Family 4 0 H) n dv (source (one_head (Family 4 0 H) mx first dv))) n (H * dv))
      (fun i j => attention n d x (a (j / dv)%nat) (v (j / dv)%nat) i (j mod dv)).
  Proof.
    intros RH. apply (side_by_side_correct N tokens 4 H n dv _ (fun t => attention n d x (a t) (v t))); try lia.
    intros t T. apply one_head_correct; auto.
  Qed.

  (** Through W_O: Σ over the heads of (head · its rows of W_O). *)
  Hypothesis tokens_O : forall t, (t < H)%nat ->
    tokens_hold N tokens dv p (first + H * (d * d) + H * (d * dv) + t * (dv * p)) (o t).

  Lemma holds_projected : (0 < p)%nat -> (n * p <= N)%nat ->
    holds N tokens closed (row_major (projected H mx first dv p) n p)
      (fun i j => sum H (fun t => dot dv (attention n d x (a t) (v t)) (o t) i j)).
  Proof.
    intros P0 RP. apply (summed_heads_correct N tokens 5 H n p _
      (fun t => dot dv (attention n d x (a t) (v t)) (o t))); [|lia].
    intros t T. rewrite (proj2 shape). apply product_correct; simpl; try tauto; try lia.
    - apply in_head_keeps; lia.
    - pose proof (one_head_correct 5 t T ltac:(lia)) as HH.
      replace (one_head (Family 5 0 H) mx first dv) with
        (row_major (source (one_head (Family 5 0 H) mx first dv)) n dv); [exact HH|].
      rewrite <- (proj1 shape). reflexivity.
    - apply holds_moving; auto.
  Qed.
End HeadsUniversal.

Section TheoremHeads.
  Variables (N n d dv p H : nat) (tokens : nat -> value).
  Variables (x : nat -> nat -> R) (a v o : nat -> nat -> nat -> R).
  Hypothesis sizes : (0 < n /\ 0 < d /\ 0 < dv /\ 0 < H)%nat.
  Hypothesis room : (n * d <= N /\ n * n <= N /\ n * dv <= N)%nat.
  Hypothesis blanks : numbers N tokens.
  (** The tokens are X, then the A of all heads, then their V. *)
  Hypothesis tokens_X : tokens_hold N tokens n d 0 x.
  Hypothesis tokens_A : forall t, (t < H)%nat -> tokens_hold N tokens d d (n * d + t * (d * d)) (a t).
  Hypothesis tokens_V : forall t, (t < H)%nat ->
    tokens_hold N tokens d dv (n * d + H * (d * d) + t * (d * dv)) (v t).

  (** *** Theorem H heads: the H concatenated results *)
  Theorem heads_U_simulates : (n * (H * dv) <= N)%nat ->
    exists y, run N tokens (heads_U n d dv H) = Some y /\
      forall i j, (i < n)%nat -> (j < H * dv)%nat ->
        y (i * (H * dv) + j)%nat = Num (attention n d x (a (j / dv)%nat) (v (j / dv)%nat) i (j mod dv)).
  Proof.
    intros RH. apply run_of. eapply (holds_side_by_side N n d dv H (n * d)); eauto; now apply closed_block.
  Qed.

  (** *** Theorem H heads through W_O, whose blocks follow the blocks of V *)
  Theorem projected_U_simulates : (0 < p)%nat -> (n * p <= N)%nat ->
    (forall t, (t < H)%nat ->
       tokens_hold N tokens dv p (n * d + H * (d * d) + H * (d * dv) + t * (dv * p)) (o t)) ->
    exists y, run N tokens (projected_U n d dv p H) = Some y /\
      forall i j, (i < n)%nat -> (j < p)%nat ->
        y (i * p + j)%nat = Num (sum H (fun t => dot dv (attention n d x (a t) (v t)) (o t) i j)).
  Proof.
    intros P0 RP TO. apply run_of. eapply holds_projected; eauto; now apply closed_block.
  Qed.
End TheoremHeads.
