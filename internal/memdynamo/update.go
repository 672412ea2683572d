package memdynamo

import (
	"maps"
	"slices"
)

// update is a bound update expression.
type update struct {
	actions []action
}

// action is one clause of an update. value computes the new value or the operand from the item
// before the update.
type action struct {
	section string
	path    path
	value   func(old Item) (Value, error) // nil for REMOVE
}

const (
	errOperandType    = validationError("An operand in the update expression has an incorrect data type")
	errOperandMissing = validationError("The provided expression refers to an attribute that does not exist in the item")
	errInvalidPath    = validationError("The document path provided in the update expression is invalid for update")
)

// bindUpdate parses and binds an UpdateExpression.
func bindUpdate(source string, s *scope) (u *update, err error) {
	defer catch(&err)
	clauses, err := parseUpdate(source)
	if err != nil {
		return nil, err
	}
	b := binder{scope: s, update: true}
	for _, c := range clauses {
		b.precheck(c.path)
		if c.value != nil {
			b.precheck(c.value)
		}
	}
	u = &update{}
	for _, c := range clauses {
		u.actions = append(u.actions, action{section: c.section, path: b.path(c.path)})
	}
	checkApart(u.paths())
	for i, c := range clauses {
		switch c.section {
		case "SET":
			u.actions[i].value = b.setValue(c.value)
		case "ADD", "DELETE":
			u.actions[i].value = b.setOperand(c)
		}
	}
	return u, nil
}

// paths returns the paths to which the update writes.
func (u *update) paths() projection {
	var out projection
	for _, a := range u.actions {
		out = append(out, a.path)
	}
	return out
}

// creates reports whether the update creates an absent item. An update that only removes does
// not. (DynamoDB Local creates an item with only the key.)
func (u *update) creates() bool {
	return slices.ContainsFunc(u.actions, func(a action) bool { return a.section == "SET" || a.section == "ADD" })
}

// setOperand returns a function for the operand of ADD or DELETE.
func (b binder) setOperand(c clause) func(Item) (Value, error) {
	v := b.value(c.value.text)
	isSet := v.Type == TypeStringSet || v.Type == TypeNumberSet || v.Type == TypeBinarySet
	if !isSet && (c.section == "DELETE" || v.Type != TypeNumber) {
		panic(invalidf("Incorrect operand type for operator or function; operator: %s, operand type: %s, typeSet: ALLOWED_FOR_%s_OPERAND", c.section, longTypeName[v.Type], c.section))
	}
	return func(Item) (Value, error) { return v, nil }
}

var longTypeName = map[string]string{
	TypeString: "STRING", TypeNumber: "NUMBER", TypeBinary: "BINARY", TypeBool: "BOOLEAN", TypeNull: "NULL",
	TypeList: "LIST", TypeMap: "MAP",
}

// setValue returns a function that computes the right side of SET.
func (b binder) setValue(n *node) func(Item) (Value, error) {
	switch n.kind {
	case parenNode:
		return b.setValue(n.kids[0])
	case plusNode:
		l, r := b.term(n, n.kids[0]), b.term(n, n.kids[1])
		return func(old Item) (Value, error) {
			x, err := numeric(l(old))
			if err != nil {
				return Value{}, err
			}
			y, err := numeric(r(old))
			if err != nil {
				return Value{}, err
			}
			if n.text == "-" {
				y = y.negated()
			}
			sum, err := x.add(y)
			return numberValue(sum), err
		}
	case valueNode:
		v := b.value(n.text)
		return func(Item) (Value, error) { return v, nil }
	case pathNode:
		p := b.path(n)
		return func(old Item) (Value, error) {
			v, ok := p.find(old)
			if !ok {
				return Value{}, errOperandMissing
			}
			return v, nil
		}
	}
	if n.text == "if_not_exists" {
		return b.ifNotExists(n)
	}
	return b.listAppend(n)
}

// term returns a function that computes an operand of + or -.
func (b binder) term(parent, n *node) func(Item) (Value, error) {
	b.refuseFunction(n, "list_append")
	b.refuseLiteral(parent.text, n, TypeNumber)
	return b.setValue(n)
}

// refuseFunction panics if the function name is called in n, at any depth.
func (b binder) refuseFunction(n *node, name string) {
	if n.kind == callNode && n.text == name {
		panic(invalidf("The function is not allowed to be used this way in an expression; function: %s", name))
	}
	for _, kid := range n.kids {
		b.refuseFunction(kid, name)
	}
}

// refuseLiteral panics if n is a literal of another type than want.
func (b binder) refuseLiteral(operator string, n *node, want string) {
	switch n.kind {
	case parenNode:
		b.refuseLiteral(operator, n.kids[0], want)
	case valueNode:
		if v := b.value(n.text); v.Type != want {
			panic(invalidf("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", operator, v.Type))
		}
	}
}

func numeric(v Value, err error) (number, error) {
	if err != nil {
		return number{}, err
	}
	if v.Type != TypeNumber {
		return number{}, errOperandType
	}
	return mustNumber(v.Text), nil
}

func (b binder) ifNotExists(n *node) func(Item) (Value, error) {
	checkCount(n, len(n.kids), 2)
	target := n.kids[0].innermost()
	if target.kind != pathNode {
		panic(invalidf("Operator or function requires a document path; operator or function: if_not_exists"))
	}
	p, otherwise := b.path(target), b.setValue(n.kids[1])
	if second := n.kids[1].innermost(); second.kind == pathNode {
		checkDistinct(n.text, []operand{{path: p}, {path: b.path(second)}})
	}
	return func(old Item) (Value, error) {
		if v, ok := p.find(old); ok {
			return v, nil
		}
		return otherwise(old)
	}
}

func (b binder) listAppend(n *node) func(Item) (Value, error) {
	checkCount(n, len(n.kids), 2)
	var parts []func(Item) (Value, error)
	for _, kid := range n.kids {
		b.refuseFunction(kid, "list_append")
		b.refuseLiteral(n.text, kid, TypeList)
		parts = append(parts, b.setValue(kid))
	}
	return func(old Item) (Value, error) {
		out := Value{Type: TypeList, List: []Value{}}
		for _, part := range parts {
			v, err := part(old)
			if err != nil {
				return Value{}, err
			}
			if v.Type != TypeList {
				return Value{}, errOperandType
			}
			out.List = append(out.List, v.List...)
		}
		return out, nil
	}
}

// apply returns the item after the update. All values are computed from the old item, and list
// indexes are positions in the old lists.
func (u *update) apply(old Item) (Item, error) {
	root := &change{}
	for _, a := range u.actions {
		root.at(a.path).leaf = &leaf{section: a.section, value: func() (Value, error) {
			if a.value == nil {
				return Value{}, nil
			}
			return a.value(old)
		}}
	}
	v, err := root.applyTo(Value{Type: TypeMap, Map: old})
	return v.Map, err
}

// change is a tree of the changes at and below one position of the item. Paths with a common
// beginning share their first nodes.
type change struct {
	leaf  *leaf
	below map[step]*change
}

type leaf struct {
	section string
	value   func() (Value, error)
}

func (c *change) at(p path) *change {
	for _, s := range p {
		if c.below == nil {
			c.below = map[step]*change{}
		}
		next := c.below[s]
		if next == nil {
			next = &change{}
			c.below[s] = next
		}
		c = next
	}
	return c
}

// steps returns the steps below in a fixed order: indexes ascending, or names in alphabetical
// order.
func (c *change) steps() []step {
	return slices.SortedFunc(maps.Keys(c.below), func(a, b step) int {
		if a.index != b.index {
			return a.index - b.index
		}
		if a.name < b.name {
			return -1
		}
		return 1
	})
}

// applyTo returns the map or list v with the changes below c applied.
func (c *change) applyTo(v Value) (Value, error) {
	steps := c.steps()
	switch {
	case v.Type == TypeMap && steps[0].name != "":
		out := make(map[string]Value, len(v.Map)+len(steps))
		maps.Copy(out, v.Map)
		for _, s := range steps {
			old, has := v.Map[s.name]
			after, keep, err := c.below[s].replace(old, has)
			if err != nil {
				return Value{}, err
			}
			if keep {
				out[s.name] = after
			} else {
				delete(out, s.name)
			}
		}
		return Value{Type: TypeMap, Map: out}, nil
	case v.Type == TypeList && steps[0].name == "":
		return c.applyToList(v, steps)
	}
	return Value{}, errInvalidPath
}

// applyToList changes and removes elements at their old positions. It then appends the elements
// that were set beyond the end, in the order of their indexes.
func (c *change) applyToList(v Value, steps []step) (Value, error) {
	out := Value{Type: TypeList, List: []Value{}}
	done := 0
	for _, s := range steps {
		inside := s.index < len(v.List)
		var old Value
		if inside {
			old = v.List[s.index]
		}
		after, keep, err := c.below[s].replace(old, inside)
		if err != nil {
			return Value{}, err
		}
		upTo := min(s.index, len(v.List))
		out.List = append(out.List, v.List[done:upTo]...)
		done = upTo
		if inside {
			done++
		}
		if keep {
			out.List = append(out.List, after)
		}
	}
	out.List = append(out.List, v.List[done:]...)
	return out, nil
}

// replace returns the value that replaces old. has is false if there is no old value. keep is
// false if there is no value afterwards.
func (c *change) replace(old Value, has bool) (after Value, keep bool, err error) {
	if c.leaf == nil {
		if !has {
			return Value{}, false, errInvalidPath
		}
		after, err = c.applyTo(old)
		return after, true, err
	}
	value, err := c.leaf.value()
	if err != nil {
		return Value{}, false, err
	}
	switch c.leaf.section {
	case "SET":
		return value, true, nil
	case "REMOVE":
		return Value{}, false, nil
	case "ADD":
		switch {
		case !has:
			return value, true, nil
		case old.Type != value.Type:
			return Value{}, false, errOperandType
		case value.Type == TypeNumber:
			sum, err := mustNumber(old.Text).add(mustNumber(value.Text))
			return numberValue(sum), true, err
		}
		return newSet(old.Type, slices.Concat(old.Set, value.Set)), true, nil
	default: // DELETE
		switch {
		case !has:
			return Value{}, false, nil
		case old.Type != value.Type:
			return Value{}, false, errOperandType
		}
		left := newSet(old.Type, slices.DeleteFunc(slices.Clone(old.Set), func(e string) bool { return slices.Contains(value.Set, e) }))
		return left, len(left.Set) > 0, nil
	}
}
