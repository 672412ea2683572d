package memdynamo

import (
	"slices"
	"strconv"
	"strings"
)

// condition reports whether a condition holds for an item. An absent item is an item without
// attributes.
type condition func(item Item) bool

// operand is a bound operand. value returns false if the item has no such value.
type operand struct {
	value   func(item Item) (v Value, ok bool)
	path    path   // set if the operand is a path
	literal *Value // set if the operand is a literal
	typ     string // set if the type is known without an item
}

// bindCondition parses and binds a ConditionExpression or FilterExpression. paths are the
// document paths in it.
func bindCondition(source string, s *scope) (c condition, paths []path, err error) {
	defer catch(&err)
	n, err := parseCondition(source)
	if err != nil {
		return nil, nil, err
	}
	b := conditionBinder{binder: binder{scope: s}}
	b.precheck(n)
	return b.condition(n), b.paths, nil
}

type conditionBinder struct {
	binder
	paths []path // all paths found so far
}

func (b *conditionBinder) condition(n *node) condition {
	switch n.kind {
	case parenNode:
		return b.condition(n.kids[0])
	case notNode:
		c := b.condition(n.kids[0])
		return func(item Item) bool { return !c(item) }
	case andNode:
		l, r := b.condition(n.kids[0]), b.condition(n.kids[1])
		return func(item Item) bool { return l(item) && r(item) }
	case orNode:
		l, r := b.condition(n.kids[0]), b.condition(n.kids[1])
		return func(item Item) bool { return l(item) || r(item) }
	case compareNode:
		return b.compare(n)
	case betweenNode:
		return b.between(n)
	case inNode:
		return b.in(n)
	default:
		return b.call(n)
	}
}

func (b *conditionBinder) operands(nodes []*node) []operand {
	out := make([]operand, len(nodes))
	for i, n := range nodes {
		out[i] = b.operand(n)
	}
	return out
}

func (b *conditionBinder) operand(n *node) operand {
	switch n.kind {
	case parenNode:
		return b.operand(n.kids[0])
	case valueNode:
		v := b.value(n.text)
		return operand{value: func(Item) (Value, bool) { return v, true }, literal: &v, typ: v.Type}
	case pathNode:
		p := b.path(n)
		b.paths = append(b.paths, p)
		return operand{value: p.find, path: p}
	}
	if n.text != "size" {
		panic(invalidf("The function is not allowed to be used this way in an expression; function: %s", n.text))
	}
	args := b.operands(n.kids)
	checkCount(n, len(args), 1)
	checkTypes("size", args, TypeString, TypeBinary, TypeList, TypeMap, TypeStringSet, TypeNumberSet, TypeBinarySet)
	return operand{typ: TypeNumber, value: func(item Item) (Value, bool) {
		v, ok := args[0].value(item)
		if !ok {
			return Value{}, false
		}
		size, ok := v.length()
		return numberValue(integer(size)), ok
	}}
}

// checkCount refuses a call with the wrong number of arguments.
func checkCount(n *node, got, want int) {
	if got != want {
		panic(invalidf("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", n.text, got))
	}
}

// checkTypes refuses an operand whose type is known and is not allowed.
func checkTypes(operator string, operands []operand, allowed ...string) {
	for _, o := range operands {
		if o.typ != "" && !slices.Contains(allowed, o.typ) {
			panic(invalidf("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", operator, o.typ))
		}
	}
}

// checkDistinct refuses a call whose first operand is a path that occurs again as another
// operand.
func checkDistinct(operator string, operands []operand) {
	first := operands[0].path
	if first == nil {
		return
	}
	for _, o := range operands[1:] {
		if o.path != nil && slices.Equal(first, o.path) {
			panic(invalidf("The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %v", operator, first))
		}
	}
}

// both returns the values of two operands. ok is false if the item lacks one of them.
func both(item Item, l, r operand) (v, w Value, ok bool) {
	v, hasV := l.value(item)
	w, hasW := r.value(item)
	return v, w, hasV && hasW
}

func (b *conditionBinder) compare(n *node) condition {
	args := b.operands(n.kids)
	l, r := args[0], args[1]
	if n.text != "=" && n.text != "<>" {
		checkTypes(n.text, args, TypeString, TypeNumber, TypeBinary)
	}
	checkDistinct(n.text, args)
	equal := func(item Item) bool {
		v, w, ok := both(item, l, r)
		return ok && v.equal(w)
	}
	ordered := func(holds func(c int) bool) condition {
		return func(item Item) bool {
			v, w, ok := both(item, l, r)
			if !ok {
				return false
			}
			c, ok := v.compare(w)
			return ok && holds(c)
		}
	}
	switch n.text {
	case "=":
		return equal
	case "<>": // like NOT a = b, true if a value is missing or the types differ
		return func(item Item) bool { return !equal(item) }
	case "<":
		return ordered(func(c int) bool { return c < 0 })
	case "<=":
		return ordered(func(c int) bool { return c <= 0 })
	case ">":
		return ordered(func(c int) bool { return c > 0 })
	default:
		return ordered(func(c int) bool { return c >= 0 })
	}
}

func (b *conditionBinder) between(n *node) condition {
	args := b.operands(n.kids)
	checkTypes(n.text, args, TypeString, TypeNumber, TypeBinary)
	checkDistinct(n.text, args)
	if lower, upper := args[1].literal, args[2].literal; lower != nil && upper != nil {
		c, ok := lower.compare(*upper)
		const bounds = "lower bound operand: AttributeValue: %s, upper bound operand: AttributeValue: %s"
		if !ok {
			panic(invalidf("The BETWEEN operator requires same data type for lower and upper bounds; "+bounds, lower.literal(), upper.literal()))
		}
		if c > 0 {
			panic(invalidf("The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "+bounds, lower.literal(), upper.literal()))
		}
	}
	return func(item Item) bool {
		v, lower, ok := both(item, args[0], args[1])
		upper, has := args[2].value(item)
		if !ok || !has {
			return false
		}
		c, ok := lower.compare(v)
		d, has := v.compare(upper)
		return ok && has && c <= 0 && d <= 0
	}
}

func (b *conditionBinder) in(n *node) condition {
	args := b.operands(n.kids)
	if len(args)-1 > maxInOperands {
		panic(invalidf("The IN operator is provided with too many operands; number of operands: %d", len(args)-1))
	}
	checkDistinct(n.text, args)
	return func(item Item) bool {
		return slices.ContainsFunc(args[1:], func(o operand) bool {
			v, w, ok := both(item, args[0], o)
			return ok && v.equal(w)
		})
	}
}

func (b *conditionBinder) call(n *node) condition {
	if n.text == "size" {
		panic(invalidf("The function is not allowed to be used this way in an expression; function: size"))
	}
	args := b.operands(n.kids)
	switch n.text {
	case "attribute_exists", "attribute_not_exists":
		checkCount(n, len(args), 1)
		if args[0].path == nil {
			panic(invalidf("Operator or function requires a document path; operator or function: %s", n.text))
		}
		want := n.text == "attribute_exists"
		return func(item Item) bool {
			_, has := args[0].value(item)
			return has == want
		}
	case "attribute_type":
		checkCount(n, len(args), 2)
		return attributeType(args)
	case "begins_with":
		checkCount(n, len(args), 2)
		checkTypes(n.text, args, TypeString, TypeBinary)
		checkDistinct(n.text, args)
		return func(item Item) bool {
			v, w, ok := both(item, args[0], args[1])
			return ok && v.Type == w.Type && (v.Type == TypeString || v.Type == TypeBinary) && strings.HasPrefix(v.Text, w.Text)
		}
	default: // contains, because precheck has refused all other names
		checkCount(n, len(args), 2)
		checkDistinct(n.text, args)
		return func(item Item) bool {
			v, w, ok := both(item, args[0], args[1])
			return ok && v.contains(w)
		}
	}
}

// attributeType returns the condition for attribute_type. The second argument must be a literal
// with the name of a type.
func attributeType(args []operand) condition {
	name := args[1].literal
	if name == nil || name.Type != TypeString {
		typ := args[1].typ
		if typ == "" {
			typ = "{" + strings.Join(allTypes, ",") + "}"
		}
		panic(invalidf("Incorrect operand type for operator or function; operator or function: attribute_type, operand type: %s", typ))
	}
	if !slices.Contains(allTypes, name.Text) {
		panic(invalidf("Invalid attribute type name found; type: %s, valid types: {N,BS,L,B,NULL,M,S,SS,NS,BOOL}", name.Text))
	}
	return func(item Item) bool {
		v, ok := args[0].value(item)
		return ok && v.Type == name.Text
	}
}

// integer returns i as a number.
func integer(i int) number {
	n, err := parseNumber(strconv.Itoa(i))
	if err != nil {
		panic(err) // can't happen: an int has less than 38 digits
	}
	return n
}
