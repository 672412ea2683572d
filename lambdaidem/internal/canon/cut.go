package canon

// Cut removes the members and elements of text that the JSON Pointers in p name, and returns the
// rest. The text must be in canonical form, and so is the rest. Cut changes the text in place, in
// linear time. A pointer to a part that does not exist has no effect.
//
// Two texts are equal after Cut if and only if they differed only in the parts that p names,
// including parts that only one of them has. In p, an array index counts the elements of the
// original array, so Cut removes the same positions from both texts.
func (p *Pointers) Cut(text []byte) []byte {
	if p == nil || len(p.root.members) == 0 {
		return text
	}
	c := cutter{text: text}
	c.value(&p.root)
	return text[:c.resultLen]
}

// cutter does the work of Cut. It removes parts of a text in place: it moves the other parts
// towards the beginning of the text. It does not check for invalid JSON, because the text is in
// canonical form.
type cutter struct {
	text      []byte
	pos       int // the next byte to read
	resultLen int // length of the result so far, which is text[:resultLen]; at most pos
}

// value reads the value at c.pos and copies it to the result, except for the parts that the JSON
// Pointers name. n is the node for this value in the tree of JSON Pointers.
func (c *cutter) value(n *node) {
	switch c.text[c.pos] {
	case '{':
		c.copyContainer('}', func(int) *node {
			return n.members[string(c.text[c.pos+1:c.afterString(c.pos)-1])]
		})
	case '[':
		c.copyContainer(']', func(i int) *node { return n.elements[i] })
	default:
		c.keep(c.after(c.pos))
	}
}

// copyContainer copies the object or array at c.pos to the result, without the members or
// elements that the JSON Pointers name. closing is the closing brace or bracket.
//
// For the member or element with index i, which begins at c.pos, find(i) returns the node in the
// tree of JSON Pointers. The node is nil if no pointer names the member or element or a part of it.
func (c *cutter) copyContainer(closing byte, find func(i int) *node) {
	c.keep(c.pos + 1)
	first := c.resultLen
	for i := 0; c.text[c.pos] != closing; i++ {
		n := find(i)
		value := c.pos
		if closing == '}' {
			value = c.afterString(c.pos) + 1
		}
		if n != nil && n.named {
			c.pos = c.after(value)
		} else {
			if c.resultLen > first {
				c.text[c.resultLen] = ','
				c.resultLen++
			}
			if n == nil {
				c.keep(c.after(value))
			} else {
				c.keep(value)
				c.value(n)
			}
		}
		if c.text[c.pos] == ',' {
			c.pos++
		}
	}
	c.keep(c.pos + 1)
}

// keep appends the text from pos to end to the result, and sets pos to end.
func (c *cutter) keep(end int) {
	c.resultLen += copy(c.text[c.resultLen:], c.text[c.pos:end])
	c.pos = end
}

// after returns the position after the value that begins at i.
func (c *cutter) after(i int) int {
	depth := 0
	for {
		switch c.text[i] {
		case '"':
			i = c.afterString(i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':':
			i++
			continue
		default:
			i = c.afterScalar(i)
		}
		if depth == 0 {
			return i
		}
	}
}

// afterScalar returns the position after the number or literal that begins at i.
func (c *cutter) afterScalar(i int) int {
	for i < len(c.text) && c.text[i] != ',' && c.text[i] != '}' && c.text[i] != ']' {
		i++
	}
	return i
}

// afterString returns the position after the string whose opening quote is at i.
func (c *cutter) afterString(i int) int {
	for i = plain(c.text, i+1); c.text[i] != '"'; {
		i = plain(c.text, i+2) // after a backslash and what it escapes
	}
	return i + 1
}
