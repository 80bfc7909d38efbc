(** * An executable semantics: [eval] over the rational numbers

    [evalQ] follows [eval] of [Rasp.v] line by line, with numbers of the type Q, which Coq computes.
    The outcome [Unknown] means that a value may be irrational (exp, log, √, tanh, sin, erf and powers
    with a fraction as exponent). [Agreement.v] proves that [evalQ] agrees with [eval]. [make coq] runs
    [runQ] on random programs and compares it with dense execution in Python. *)

From Coq Require Import List Bool Arith ZArith QArith Qround Qpower.
Import ListNotations.
From Locum Require Import Rasp.
Local Open Scope Q_scope.

(** ** Values and outcomes *)
Inductive valueQ := NumQ (x : Q) | BoolQ (b : bool).

Inductive outcome (A : Type) := Value (a : A) | NoValue | Unknown.
Arguments Value {A}.
Arguments NoValue {A}.
Arguments Unknown {A}.

Definition numberQ (v : valueQ) : Q := match v with NumQ x => x | BoolQ b => if b then 1 else 0 end.
Definition truthQ (v : valueQ) : bool := match v with NumQ x => negb (Qeq_bool x 0) | BoolQ b => b end.

Definition lessQ (a b : Q) : bool := negb (Qle_bool b a).
Definition compareQ (p : predicate) (a b : Q) : bool :=
  match p with
  | Eq => Qeq_bool a b
  | Ne => negb (Qeq_bool a b)
  | Lt => lessQ a b
  | Le => Qle_bool a b
  | Gt => lessQ b a
  | Ge => Qle_bool b a
  end.

(** ** Attention *)
Fixpoint totalQ (l : list Q) : Q := match l with [] => 0 | x :: l => Qred (x + totalQ l) end.
Definition meanQ (l : list Q) : Q := Qred (totalQ l / inject_Z (Z.of_nat (length l))).
Definition is_numberQ (v : valueQ) : bool := match v with NumQ _ => true | BoolQ _ => false end.

Definition aggregateQ (N : nat) (v : nat -> valueQ) (default : valueQ) (keys : list nat) : outcome valueQ :=
  match keys with
  | [] => Value default
  | [k] => Value (v k)
  | _ => if existsb (fun k => is_numberQ (v k)) (seq 0 N)
         then Value (NumQ (meanQ (map (fun k => numberQ (v k)) keys)))
         else NoValue
  end.

Definition bestQ (v : nat -> valueQ) (keys : list nat) (k : nat) : bool :=
  existsb (Nat.eqb k) keys
  && forallb (fun other => compareQ Ge (numberQ (v k)) (numberQ (v other))) keys.

(** ** Elementwise operations *)
Definition valueQ_of (a : atom) : valueQ :=
  match a with
  | Integer z => NumQ (inject_Z z)
  | Fraction n d => NumQ (Qred (n # d))
  | Boolean b => BoolQ b
  end.

Definition half : Q := 1 # 2.
Definition nearestQ (x : Q) : Z :=
  let above := Qfloor (x + half) in
  if Qeq_bool (x + half) (inject_Z above) then if Z.even above then above else (above - 1)%Z else above.

Definition apply1Q (op : unary) (v : valueQ) : outcome valueQ :=
  let a := numberQ v in
  match op with
  | Negate => Value (NumQ (- a))
  | Absolute => Value (NumQ (if Qle_bool 0 a then a else - a))
  | Exp | Tanh | Sin | Erf => Unknown
  | Log => if lessQ 0 a then Unknown else NoValue
  | Sqrt => if Qle_bool 0 a then Unknown else NoValue
  | Floor => Value (NumQ (inject_Z (Qfloor a)))
  | Round => Value (NumQ (inject_Z (nearestQ a)))
  | Member l => Value (BoolQ (existsb (fun w => compareQ Eq a (numberQ (valueQ_of w))) l))
  | Not => Value (BoolQ (negb (truthQ v)))
  | Indicator => Value (NumQ (if truthQ v then 1 else 0))
  end.

Definition powerQ (a b : Q) : outcome Q :=
  if Qeq_bool b (inject_Z (Qfloor b)) then
    if Qeq_bool a 0 && lessQ b 0 then NoValue else Value (Qred (Qpower a (Qfloor b)))
  else if lessQ 0 a then Unknown
  else if Qeq_bool a 0 && lessQ 0 b then Value 0 else NoValue.

Definition apply2Q (op : binary) (v w : valueQ) : outcome valueQ :=
  let a := numberQ v in
  let b := numberQ w in
  match op with
  | Add => Value (NumQ (Qred (a + b)))
  | Subtract => Value (NumQ (Qred (a - b)))
  | Multiply => Value (NumQ (Qred (a * b)))
  | Divide => if Qeq_bool b 0 then NoValue else Value (NumQ (Qred (a / b)))
  | Modulo => if Qeq_bool b 0 then NoValue else Value (NumQ (Qred (a - b * inject_Z (Qfloor (a / b)))))
  | FloorDivide => if Qeq_bool b 0 then NoValue else Value (NumQ (inject_Z (Qfloor (a / b))))
  | Power => match powerQ a b with Value r => Value (NumQ r) | NoValue => NoValue | Unknown => Unknown end
  | Minimum => Value (if lessQ a b then v else w)
  | Maximum => Value (if lessQ b a then v else w)
  | Compare p => Value (BoolQ (compareQ p a b))
  | And => Value (BoolQ (truthQ v && truthQ w))
  | Or => Value (BoolQ (truthQ v || truthQ w))
  end.

(** ** Evaluation *)

(** Both values, or no value if one of them has no value. *)
Definition both {A B C} (a : outcome A) (b : outcome B) (f : A -> B -> outcome C) : outcome C :=
  match a, b with
  | Value x, Value y => f x y
  | NoValue, _ | _, NoValue => NoValue
  | _, _ => Unknown
  end.
Definition one {A B} (a : outcome A) (f : A -> outcome B) : outcome B :=
  match a with Value x => f x | NoValue => NoValue | Unknown => Unknown end.

Fixpoint everywhereQ {A} (n : nat) (f : nat -> outcome A) (otherwise : A) : outcome (nat -> A) :=
  match n with
  | O => Value (fun _ => otherwise)
  | S m => both (everywhereQ m f otherwise) (f m)
             (fun g a => Value (fun q => if Nat.eqb q m then a else g q))
  end.

Section Evaluation.
  Variable N : nat.
  Variable tokens : nat -> valueQ.

  Definition positionsQ (f : nat -> outcome valueQ) : outcome (nat -> valueQ) := everywhereQ N f (NumQ 0).

  Fixpoint sum_headsQ (body : environment -> outcome (nat -> valueQ)) (fs : list family)
    (e : environment) : outcome (nat -> valueQ) :=
    match fs with
    | [] => body e
    | f :: rest =>
        (fix loop (n : nat) : outcome (nat -> valueQ) :=
           match n with
           | O => Value (fun _ => NumQ 0)
           | S m => both (loop m) (sum_headsQ body rest (bind e f m))
               (fun a b => positionsQ (fun q => Value (NumQ (Qred (numberQ (a q) + numberQ (b q))))))
           end) (size f)
    end.

  Fixpoint evalQ (p : sop) (e : environment) : outcome (nat -> valueQ) :=
    match p with
    | Tokens => Value tokens
    | Indices => Value (fun q => NumQ (inject_Z (Z.of_nat q)))
    | Length => Value (fun _ => NumQ (inject_Z (Z.of_nat N)))
    | Constant a => Value (fun _ => valueQ_of a)
    | Head f => Value (fun _ => NumQ (inject_Z (Z.of_nat (e (height f) (number_in_sum f)))))
    | Unary op a => one (evalQ a e) (fun v => positionsQ (fun q => apply1Q op (v q)))
    | Binary op a b => both (evalQ a e) (evalQ b e) (fun v w => positionsQ (fun q => apply2Q op (v q) (w q)))
    | IfElse c a b =>
        both (evalQ c e) (both (evalQ a e) (evalQ b e) (fun v w => Value (v, w)))
          (fun t vw => positionsQ (fun q => Value (if truthQ (t q) then fst vw q else snd vw q)))
    | Aggregate s values default =>
        both (selectQ s e) (evalQ values e)
          (fun m v => positionsQ (fun q => aggregateQ N v (valueQ_of default) (selected N m q)))
    | Width s => one (selectQ s e)
        (fun m => positionsQ (fun q => Value (NumQ (inject_Z (Z.of_nat (length (selected N m q)))))))
    | SumOver body families => sum_headsQ (evalQ body) families e
    end
  with selectQ (s : selector) (e : environment) : outcome (nat -> nat -> bool) :=
    match s with
    | Select p keys queries =>
        both (evalQ keys e) (evalQ queries e)
          (fun k q => Value (fun i j => compareQ p (numberQ (k j)) (numberQ (q i))))
    | SelectorAnd a b => both (selectQ a e) (selectQ b e) (fun x y => Value (fun i j => x i j && y i j))
    | SelectorOr a b => both (selectQ a e) (selectQ b e) (fun x y => Value (fun i j => x i j || y i j))
    | SelectorNot a => one (selectQ a e) (fun x => Value (fun i j => negb (x i j)))
    | Best a scores =>
        both (selectQ a e) (evalQ scores e) (fun x v => Value (fun i j => bestQ v (selected N x i) j))
    end.
End Evaluation.

(** A closed program on a list of tokens. *)
Definition runQ (tokens : list valueQ) (p : sop) : outcome (list valueQ) :=
  let N := length tokens in
  one (evalQ N (fun q => nth q tokens (NumQ 0)) p (fun _ _ => 0%nat)) (fun v => Value (map v (seq 0 N))).
