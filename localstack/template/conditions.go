package template

// exists reports whether a resource has no Condition, or one that holds.
func (e *evaluator) exists(resource *node) (bool, error) {
	condition := resource.field("Condition")
	if condition == nil {
		return true, nil
	}
	return e.named(condition, condition.text)
}

// choose returns the value that !If chooses, before its evaluation. The other value may refer to
// something that does not exist in this environment.
func (e *evaluator) choose(n *node) (*node, error) {
	if n.arg.kind != list || len(n.arg.items) != 3 || n.arg.items[0].kind != scalar {
		return nil, errorAt(n, "!If takes the name of a condition and two values")
	}
	holds, err := e.named(n, n.arg.items[0].text)
	if err != nil {
		return nil, err
	}
	if holds {
		return n.arg.items[1], nil
	}
	return n.arg.items[2], nil
}

// named evaluates a condition of the template's Conditions section.
func (e *evaluator) named(at *node, name string) (bool, error) {
	condition := e.conditions.field(name)
	if condition == nil {
		return false, errorAt(at, "%s is not one of the template's Conditions", name)
	}
	if e.pending[name] {
		return false, errorAt(condition, "condition %s refers to itself", name)
	}
	e.pending[name] = true
	defer delete(e.pending, name)
	return e.condition(condition)
}

func (e *evaluator) condition(n *node) (bool, error) {
	// {"Condition": name} refers to a condition here. Elsewhere it is an ordinary mapping.
	if name := n.field("Condition"); name != nil && len(n.keys) == 1 {
		return e.named(n, name.text)
	}
	if n.kind != call {
		return false, errorAt(n, "%s is not a condition; use Equals, And, Or, Not or Condition", n.describe())
	}
	switch n.fn {
	case "Condition":
		return e.named(n, n.arg.text)
	case "Equals":
		args, err := e.arguments(n, 2)
		if err != nil {
			return false, err
		}
		return args[0].kind == scalar && args[1].kind == scalar && args[0].text == args[1].text, nil
	case "And", "Or", "Not":
		if n.arg.kind != list || (n.fn == "Not") != (len(n.arg.items) == 1) {
			return false, errorAt(n, "!%s takes a list of conditions (one for Not, two to ten otherwise)", n.fn)
		}
		return e.combine(n)
	default:
		return false, errorAt(n, "!%s is not a condition; use Equals, And, Or, Not or Condition", n.fn)
	}
}

func (e *evaluator) combine(n *node) (bool, error) {
	for _, item := range n.arg.items {
		holds, err := e.condition(item)
		if err != nil {
			return false, err
		}
		switch {
		case n.fn == "Not":
			return !holds, nil
		case n.fn == "And" && !holds:
			return false, nil
		case n.fn == "Or" && holds:
			return true, nil
		}
	}
	return n.fn == "And", nil
}

// branch returns the value that !If chooses, before its evaluation, or n itself if n is no !If or
// only AWS knows the condition. It returns nil if the value is absent.
func (r *reader) branch(n *node) *node {
	for n != nil && n.kind == call && n.fn == "If" {
		var chosen *node
		if why := r.optional(func() (err error) {
			chosen, err = r.choose(n)
			return err
		}); why != "" {
			return n
		}
		n = chosen
	}
	if n == nil || n.kind == null || r.isNoValue(n) {
		return nil
	}
	return n
}

// entries returns the items of a list, or n itself if it is no list. It leaves out the items that
// a condition removes.
func (r *reader) entries(n *node) []*node {
	n = r.branch(n)
	switch {
	case n == nil:
		return nil
	case n.kind != list:
		return []*node{n}
	}
	var all []*node
	for _, item := range n.items {
		if item = r.branch(item); item != nil {
			all = append(all, item)
		}
	}
	return all
}

func (r *reader) isNoValue(n *node) bool {
	return n.kind == noValue || n.kind == call && n.fn == "Ref" && n.arg.text == "AWS::NoValue"
}
