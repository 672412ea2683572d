package canon

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Pointers is a set of JSON Pointers (RFC 6901), which name parts of JSON texts. It is safe
// for concurrent use. A nil *Pointers is the empty set.
type Pointers struct{ root node }

// ParsePointers parses JSON Pointers (RFC 6901). It returns an error if a pointer is
// invalid. It also returns an error for the empty pointer, which names the whole text.
func ParsePointers(pointers []string) (*Pointers, error) {
	p := &Pointers{}
	for _, pointer := range pointers {
		if err := p.add(pointer); err != nil {
			return nil, fmt.Errorf("%q %w", pointer, err)
		}
	}
	return p, nil
}

// node is a node in a tree of JSON Pointers. Each edge of the tree is one token of a JSON Pointer,
// such as a and b in /a/b. So a node stands for a whole JSON Pointer or for its first tokens.
type node struct {
	named bool // a pointer ends here
	// members has the child node for each token below this node. The token is the name of
	// an object's member, in canonical spelling.
	members map[string]*node
	// elements has the child nodes whose token is a number such as "0". Such a token may be the
	// name of a member or the index of an array element. The map's key is that index.
	elements map[int]*node
}

// Below returns the pointers of p whose first token is name, without that token. They name parts of
// the object member, or of the array element, to which name leads. Below returns nil if p has no
// such pointer.
func (p *Pointers) Below(name string) *Pointers {
	if p == nil {
		return nil
	}
	n := p.root.members[spell(name)]
	if n == nil {
		return nil
	}
	return &Pointers{root: *n}
}

func (p *Pointers) add(pointer string) error {
	switch {
	case pointer == "":
		return errors.New("names the whole text")
	case pointer[0] != '/':
		return errors.New(`does not begin with "/" (RFC 6901, section 3)`)
	case !utf8.ValidString(pointer):
		return errors.New("is not UTF-8")
	}
	n := &p.root
	for _, token := range strings.Split(pointer[1:], "/") {
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		if strings.Count(token, "~") != strings.Count(token, "~0")+strings.Count(token, "~1") {
			return errors.New(`has a "~" that is neither ~0 nor ~1 (RFC 6901, section 3)`)
		}
		n = n.child(name)
	}
	n.named = true
	return nil
}

// child returns the child node for name, which is one token of a pointer after its escapes are
// decoded. If the node has no such child, child adds it.
func (n *node) child(name string) *node {
	spelled := spell(name)
	next := n.members[spelled]
	if next != nil {
		return next
	}
	next = &node{}
	if n.members == nil {
		n.members = make(map[string]*node)
	}
	n.members[spelled] = next
	// An array index has neither leading zeros (RFC 6901, section 4) nor a sign.
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i <= math.MaxInt32 && strconv.Itoa(i) == name {
		if n.elements == nil {
			n.elements = make(map[int]*node)
		}
		n.elements[i] = next
	}
	return next
}

// spell returns name as the canonical form writes it, without the quotes.
func spell(name string) string {
	var out []byte
	for _, r := range name {
		out = appendEscaped(out, r)
	}
	return string(out)
}
