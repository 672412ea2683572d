package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/localstack/iam"
)

// permissions checks that the functions' roles allowed every call, and shows the permissions that
// the story did not need.
func (d *demo) permissions(context.Context) error {
	var refused []string
	for _, use := range d.iam.Uses() {
		if !use.Allowed {
			refused = append(refused, fmt.Sprintf("%s: %s on %s", use.Function, use.Request.Action, use.Request.Resource))
		}
	}
	granted := slices.DeleteFunc(d.iam.Permissions(), func(p iam.Permission) bool { return p.Elsewhere })
	var places []string             // "FUNCTION, RESOURCE" of each unused permission, in the template's order
	unused := map[string][]string{} // actions, by place
	used := 0
	for _, p := range granted {
		if p.Used > 0 {
			used++
			continue
		}
		place := p.Function + ", " + p.Resources[0][strings.LastIndexByte(p.Resources[0], ':')+1:]
		if unused[place] == nil {
			places = append(places, place)
		}
		unused[place] = append(unused[place], p.Action)
	}
	d.out.check(len(refused) == 0, fmt.Sprintf("nothing was refused; of the %d permissions on tables, streams and queues, %d were used", len(granted), used), refused)
	for _, place := range places {
		d.out.note("not needed by this story: %s (%s)", strings.Join(unused[place], ", "), place)
	}
	return nil
}
