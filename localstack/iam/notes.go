package iam

import (
	"fmt"
)

// Notes returns a line for each part of the policies that can't be checked: a role of which only
// AWS knows all policies, a value or a condition key that only AWS knows.
func (c *Checker) Notes() []string {
	var notes []string
	for _, f := range c.template.Functions {
		p := c.principals[f.LogicalID]
		for _, why := range f.Role.Unknown {
			notes = append(notes, fmt.Sprintf("the permissions of %s are not checked, only what its policies deny: %s", f.LogicalID, why))
		}
		for _, s := range p.statements {
			if !matters(s.Statement) {
				continue
			}
			if s.Unknown != "" {
				notes = append(notes, fmt.Sprintf("%s: this statement of %s has a value that only AWS knows: %s", s.At, f.LogicalID, s.Unknown))
			}
			for _, condition := range s.conditions {
				if condition.key != "" && !decidable(condition.key) {
					notes = append(notes, fmt.Sprintf("%s: the condition %s of %s is not checked, because only AWS knows its key", s.At, condition.text, f.LogicalID))
				}
			}
		}
	}
	return notes
}
