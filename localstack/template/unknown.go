package template

// known evaluates a value that a local run can do without. If the value is not known here, why is
// the reason; otherwise why is empty.
func (r *reader) known(n *node) (value *node, why string) {
	why = r.optional(func() (err error) {
		value, err = r.value(n)
		return err
	})
	return value, why
}

// optional calls evaluate for a value that a local run can do without. It returns the text of the
// error of evaluate, or "" if there is none. A missing parameter or dynamic reference counts as
// such an error, and does not make Read fail.
func (r *reader) optional(evaluate func() error) (why string) {
	before := r.missing
	err := evaluate()
	if len(r.missing.places) > len(before.places) {
		err = r.missing.places[len(before.places)]
		r.missing = before
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// nameOf returns the text of the field key of n. It returns "" if there is no such field or if
// its value is not known here.
func (r *reader) nameOf(n *node, key string) string {
	field := n.field(key)
	if field == nil {
		return ""
	}
	value, why := r.known(field)
	if why != "" {
		return ""
	}
	return value.text
}

// names reports whether roles, a list of role names, contains name.
func (r *reader) names(roles *node, name string) bool {
	for _, entry := range r.entries(roles) {
		if value, why := r.known(entry); why == "" && value.text == name {
			return true
		}
	}
	return false
}
