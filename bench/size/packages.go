package main

import (
	"cmp"
	"context"
	"debug/elf"
	"slices"
	"strings"
)

type packageSize struct {
	name  string
	bytes int64
}

// addedByPackage returns the packages of which the guarded program contains more code and
// variables than the bare one, with the difference in bytes, the largest first. The linker's
// tables about code and variables, such as the line numbers for stack traces, take about as much
// again.
func addedByPackage(ctx context.Context, folder, arch string) ([]packageSize, error) {
	added := map[string]int64{}
	for program, sign := range map[string]int64{"bare": -1, "guarded": 1} {
		// -w keeps the symbols and omits the debug information.
		err := build(ctx, folder, program, arch, "-w", func(file *elf.File) error {
			symbols, err := file.Symbols()
			for _, s := range symbols {
				if int(s.Section) < len(file.Sections) && file.Sections[s.Section].Type != elf.SHT_NOBITS {
					added[packageOf(s.Name)] += sign * int64(s.Size) //nolint:gosec // far below the maximum of int64
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var all []packageSize
	for name, bytes := range added {
		if bytes > 0 {
			all = append(all, packageSize{name, bytes})
		}
	}
	slices.SortFunc(all, func(a, b packageSize) int { return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name)) })
	return all, nil
}

// packageOf returns the package of a symbol such as "net/http.(*Client).Do". It returns "the
// linker's" for symbols that the linker makes, such as type descriptors.
func packageOf(symbol string) string {
	if strings.HasPrefix(symbol, "type:") || strings.HasPrefix(symbol, "go:") || !strings.Contains(symbol, ".") {
		return "the linker's"
	}
	path := symbol
	if i := strings.IndexAny(path, "[("); i >= 0 { // type arguments and receivers have package paths too
		path = path[:i]
	}
	folder := strings.LastIndexByte(path, '/') + 1
	name, _, _ := strings.Cut(path[folder:], ".")
	return strings.ReplaceAll(path[:folder]+name, "%2e", ".")
}
