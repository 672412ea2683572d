package memdynamo

import (
	"fmt"
	"slices"
	"strings"
)

// violations describes the members of a request that break a constraint of the API's model. AWS
// reports all of them together, before it checks anything else.
type violations []string

func (v *violations) add(member, value, constraint string, args ...any) {
	*v = append(*v, fmt.Sprintf("Value%s at '%s' failed to satisfy constraint: ", value, member)+fmt.Sprintf(constraint, args...))
}

func (v *violations) choice(member, value string, words ...string) {
	if value != "" && !slices.Contains(words, value) {
		v.add(member, " '"+value+"'", "Member must satisfy enum value set: [%s]", strings.Join(words, ", "))
	}
}

func (v *violations) required(member string, absent bool) {
	if absent {
		v.add(member, " null", "Member must not be null")
	}
}

func (v *violations) err() error {
	if len(*v) == 0 {
		return nil
	}
	noun := "errors"
	if len(*v) == 1 {
		noun = "error"
	}
	return invalidf("%d validation %s detected: %s", len(*v), noun, strings.Join(*v, "; "))
}
