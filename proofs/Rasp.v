(** * RASP: programs and their meaning

    A program is a term of the type [sop] below. [eval] runs a program like dense execution: every s-op
    is computed at every position. If an operation has no value at one position, the whole program has
    no value ([None]). [aggregate] below defines attention, as the mean of the values at the selected
    keys, or as the default if no key is selected. *)

From Coq Require Import Reals List Bool Arith ZArith.
Import ListNotations.
Open Scope R_scope.

(** ** Values *)

Inductive value := Num (r : R) | Bool (b : bool).

Definition number (v : value) : R :=
  match v with Num r => r | Bool b => if b then 1 else 0 end.

Definition truth (v : value) : bool :=
  match v with Num r => if Req_EM_T r 0 then false else true | Bool b => b end.

Inductive predicate := Eq | Ne | Lt | Le | Gt | Ge.

Definition compare (p : predicate) (a b : R) : bool :=
  match p with
  | Eq => if Req_EM_T a b then true else false
  | Ne => if Req_EM_T a b then false else true
  | Lt => if Rlt_dec a b then true else false
  | Le => if Rle_dec a b then true else false
  | Gt => if Rgt_dec a b then true else false
  | Ge => if Rge_dec a b then true else false
  end.

(** ** Attention *)

(** The keys that a query selects, in their order. *)
Definition selected (N : nat) (s : nat -> nat -> bool) (q : nat) : list nat :=
  filter (s q) (seq 0 N).

Fixpoint total (l : list R) : R := match l with [] => 0 | x :: l => x + total l end.

Definition mean (l : list R) : R := total l / INR (length l).

Definition is_number (v : value) : bool := match v with Num _ => true | Bool _ => false end.

(** The result is the default for no key, the value for one key, and the mean of the values for
    several keys. A mean has a value unless all values of the sequence are booleans. In a sequence of
    numbers and booleans, [true] counts as 1 and [false] as 0. *)
Definition aggregate (N : nat) (v : nat -> value) (default : value) (keys : list nat) : option value :=
  match keys with
  | [] => Some default
  | [k] => Some (v k)
  | _ => if existsb (fun k => is_number (v k)) (seq 0 N)
         then Some (Num (mean (map (fun k => number (v k)) keys)))
         else None
  end.

Definition best (v : nat -> value) (keys : list nat) (k : nat) : bool :=
  existsb (Nat.eqb k) keys
  && forallb (fun other => compare Ge (number (v k)) (number (v other))) keys.

(** ** Programs *)

(** Constants: integers, booleans, and floats. A float is represented by an equal fraction. *)
Inductive atom := Integer (z : Z) | Fraction (n : Z) (d : positive) | Boolean (b : bool).

Inductive unary :=
  | Negate | Absolute | Exp | Log | Sqrt | Floor | Round | Tanh | Sin | Erf | Not | Indicator
  | Member (l : list atom).

Inductive binary :=
  | Add | Subtract | Multiply | Divide | Modulo | FloorDivide | Power | Minimum | Maximum
  | Compare (p : predicate) | And | Or.

(** As in the graph, the name of a family of heads consists of the height of its sum and a number. *)
Record family := Family { height : nat; number_in_sum : nat; size : nat }.

Inductive sop :=
  | Tokens
  | Indices
  | Length
  | Constant (a : atom)
  | Head (f : family)
  | Unary (op : unary) (a : sop)
  | Binary (op : binary) (a b : sop)
  | IfElse (c a b : sop)
  | Aggregate (s : selector) (values : sop) (default : atom)
  | Width (s : selector)
  | SumOver (body : sop) (families : list family)
with selector :=
  | Select (p : predicate) (keys queries : sop)
  | SelectorAnd (a b : selector)
  | SelectorOr (a b : selector)
  | SelectorNot (a : selector)
  | Best (s : selector) (scores : sop).

(** ** Meaning of elementwise operations *)

Definition value_of (a : atom) : value :=
  match a with
  | Integer z => Num (IZR z)
  | Fraction n d => Num (IZR n / IZR (Zpos d))
  | Boolean b => Bool b
  end.

Definition floor (r : R) : R := IZR (Int_part r).

(** The nearest integer; halves are rounded to even. *)
Definition nearest (r : R) : R :=
  let above := Int_part (r + / 2) in
  if Req_EM_T (r + / 2) (IZR above)
  then IZR (if Z.even above then above else above - 1) else IZR above.

(** erf x = 2/√π · ∫ from 0 to x of exp(−t²) dt *)
Definition bell (t : R) : R := exp (- (t * t)).
Lemma bell_continuous : continuity bell.
Proof. unfold bell. reg. Qed.
Definition bell_integrable (x : R) : Riemann_integrable bell 0 x :=
  match Rle_lt_dec 0 x with
  | left H => continuity_implies_RiemannInt H (fun t _ => bell_continuous t)
  | right H => RiemannInt_P1 (continuity_implies_RiemannInt (Rlt_le x 0 H) (fun t _ => bell_continuous t))
  end.
Definition erf (x : R) : R := 2 / sqrt PI * RiemannInt (bell_integrable x).

(** [None]: the operation has no value, as for the logarithm of −1. *)
Definition apply1 (op : unary) (v : value) : option value :=
  let a := number v in
  match op with
  | Negate => Some (Num (- a))
  | Absolute => Some (Num (Rabs a))
  | Exp => Some (Num (exp a))
  | Log => if Rlt_dec 0 a then Some (Num (ln a)) else None
  | Sqrt => if Rle_dec 0 a then Some (Num (sqrt a)) else None
  | Floor => Some (Num (floor a))
  | Round => Some (Num (nearest a))
  | Tanh => Some (Num (tanh a))
  | Sin => Some (Num (sin a))
  | Erf => Some (Num (erf a))
  | Member l => Some (Bool (existsb (fun w => compare Eq a (number (value_of w))) l))
  | Not => Some (Bool (negb (truth v)))
  | Indicator => Some (Num (if truth v then 1 else 0))
  end.

(** A power has a value if the base is positive, if the exponent is an integer and no division by 0
    occurs, or if the base is 0 and the exponent is positive. *)
Definition power (a b : R) : option R :=
  if Rlt_dec 0 a then Some (Rpower a b)
  else if Req_EM_T b (floor b) then
    if Req_EM_T a 0 then if Rlt_dec b 0 then None else Some (powerRZ a (Int_part b))
    else Some (powerRZ a (Int_part b))
  else if Req_EM_T a 0 then if Rlt_dec 0 b then Some 0 else None
  else None.

Definition apply2 (op : binary) (v w : value) : option value :=
  let a := number v in
  let b := number w in
  match op with
  | Add => Some (Num (a + b))
  | Subtract => Some (Num (a - b))
  | Multiply => Some (Num (a * b))
  | Divide => if Req_EM_T b 0 then None else Some (Num (a / b))
  | Modulo => if Req_EM_T b 0 then None else Some (Num (a - b * floor (a / b)))
  | FloorDivide => if Req_EM_T b 0 then None else Some (Num (floor (a / b)))
  | Power => match power a b with Some r => Some (Num r) | None => None end
  | Minimum => Some (if Rlt_dec a b then v else w)
  | Maximum => Some (if Rgt_dec a b then v else w)
  | Compare p => Some (Bool (compare p a b))
  | And => Some (Bool (truth v && truth w))
  | Or => Some (Bool (truth v || truth w))
  end.

(** ** Evaluation *)

(** Programs are strict: they have a value at every position, or no value. *)
Fixpoint everywhere {A} (n : nat) (f : nat -> option A) (otherwise : A) : option (nat -> A) :=
  match n with
  | O => Some (fun _ => otherwise)
  | S m =>
      match everywhere m f otherwise, f m with
      | Some g, Some a => Some (fun q => if Nat.eqb q m then a else g q)
      | _, _ => None
      end
  end.

Definition environment := nat -> nat -> nat.

Definition bind (e : environment) (f : family) (head : nat) : environment :=
  fun h i => if Nat.eqb h (height f) && Nat.eqb i (number_in_sum f) then head else e h i.

Section Evaluation.
  Variable N : nat.
  Variable tokens : nat -> value.

  Definition positions (f : nat -> option value) : option (nat -> value) :=
    everywhere N f (Num 0).

  (** Σ over the heads of the families; the first family is the outermost: 0 + first term + second
      term + … *)
  Fixpoint sum_heads (body : environment -> option (nat -> value)) (fs : list family)
    (e : environment) : option (nat -> value) :=
    match fs with
    | [] => body e
    | f :: rest =>
        (fix loop (n : nat) : option (nat -> value) :=
           match n with
           | O => Some (fun _ => Num 0)
           | S m =>
               match loop m, sum_heads body rest (bind e f m) with
               | Some a, Some b => Some (fun q => Num (number (a q) + number (b q)))
               | _, _ => None
               end
           end) (size f)
    end.

  Fixpoint eval (p : sop) (e : environment) : option (nat -> value) :=
    match p with
    | Tokens => Some tokens
    | Indices => Some (fun q => Num (INR q))
    | Length => Some (fun _ => Num (INR N))
    | Constant a => Some (fun _ => value_of a)
    | Head f => Some (fun _ => Num (INR (e (height f) (number_in_sum f))))
    | Unary op a =>
        match eval a e with
        | Some v => positions (fun q => apply1 op (v q))
        | None => None
        end
    | Binary op a b =>
        match eval a e, eval b e with
        | Some v, Some w => positions (fun q => apply2 op (v q) (w q))
        | _, _ => None
        end
    | IfElse c a b =>
        match eval c e, eval a e, eval b e with
        | Some t, Some v, Some w => Some (fun q => if truth (t q) then v q else w q)
        | _, _, _ => None
        end
    | Aggregate s values default =>
        match select s e, eval values e with
        | Some m, Some v => positions (fun q => aggregate N v (value_of default) (selected N m q))
        | _, _ => None
        end
    | Width s =>
        match select s e with
        | Some m => Some (fun q => Num (INR (length (selected N m q))))
        | None => None
        end
    | SumOver body families => sum_heads (eval body) families e
    end
  with select (s : selector) (e : environment) : option (nat -> nat -> bool) :=
    match s with
    | Select p keys queries =>
        match eval keys e, eval queries e with
        | Some k, Some q => Some (fun i j => compare p (number (k j)) (number (q i)))
        | _, _ => None
        end
    | SelectorAnd a b =>
        match select a e, select b e with
        | Some x, Some y => Some (fun i j => x i j && y i j)
        | _, _ => None
        end
    | SelectorOr a b =>
        match select a e, select b e with
        | Some x, Some y => Some (fun i j => x i j || y i j)
        | _, _ => None
        end
    | SelectorNot a =>
        match select a e with
        | Some x => Some (fun i j => negb (x i j))
        | None => None
        end
    | Best a scores =>
        match select a e, eval scores e with
        | Some x, Some v => Some (fun i j => best v (selected N x i) j)
        | _, _ => None
        end
    end.
End Evaluation.

(** The result of a closed program on an input. *)
Definition run (N : nat) (tokens : nat -> value) (p : sop) : option (nat -> value) :=
  eval N tokens p (fun _ _ => 0%nat).
