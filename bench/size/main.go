// Command size prints how much the guard adds to the binary of a Lambda function. It builds two
// programs as template.yaml's functions are built: bare, whose handler places an order by two
// writes of the AWS SDK, and guarded, which guards the same handler with all defaults.
package main

import (
	"cmp"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/bench/internal/command"
)

func main() { os.Exit(command.Run("size", run)) }

func run(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "size")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	fmt.Println("| architecture | bare | guarded | the guard adds |\n|---|---|---|---|")
	for _, arch := range []string{"arm64", "amd64"} {
		s, err := measure(ctx, folder, arch)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %d KB | %d KB | %d KB, %.1f %% |\n", arch, s.bare/1000, s.guarded/1000, s.added()/1000, s.percent())
	}
	added, err := addedByPackage(ctx, folder, "arm64")
	if err != nil {
		return err
	}
	fmt.Printf("\nCode and variables that the guard adds on arm64, in bytes:\n\n")
	for _, p := range added {
		fmt.Printf("%9d %s\n", p.bytes, p.name)
	}
	return nil
}

// sizes are the sizes of the two programs in bytes: what their files contain, without the padding
// between segments. On arm64 a segment begins at a multiple of 64 KB, so the sizes of the
// files themselves would hide any smaller difference.
type sizes struct{ bare, guarded uint64 }

func (s sizes) added() uint64    { return s.guarded - s.bare }
func (s sizes) percent() float64 { return 100 * float64(s.added()) / float64(s.bare) }

// measure builds both programs for an architecture into the folder.
func measure(ctx context.Context, folder, arch string) (s sizes, err error) {
	for program, size := range map[string]*uint64{"bare": &s.bare, "guarded": &s.guarded} {
		path, err := build(ctx, folder, program, arch, "-s -w")
		if err != nil {
			return sizes{}, err
		}
		file, err := elf.Open(path)
		if err != nil {
			return sizes{}, fmt.Errorf("read the program %s: %w", program, err)
		}
		for _, section := range file.Sections {
			if section.Type != elf.SHT_NOBITS {
				*size += section.FileSize
			}
		}
		if err := file.Close(); err != nil {
			return sizes{}, fmt.Errorf("read the program %s: %w", program, err)
		}
	}
	return s, nil
}

// build builds a program of this folder, as the Makefile's build_function does, and returns the
// path of its file.
func build(ctx context.Context, folder, program, arch, linkerFlags string) (string, error) {
	path := filepath.Join(folder, program)
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "lambda.norpc", "-trimpath", "-buildvcs=false", "-ldflags", linkerFlags,
		"-o", path, "github.com/lambdaidem/toolkit/bench/size/"+program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}
	return path, nil
}

type packageSize struct {
	name  string
	bytes int64
}

// addedByPackage returns how many bytes of code and variables the guarded program has more than
// the bare one, by package, the largest first. The linker's tables about them, such as the line
// numbers for stack traces, take about as much again.
func addedByPackage(ctx context.Context, folder, arch string) ([]packageSize, error) {
	added := map[string]int64{}
	for program, sign := range map[string]int64{"bare": -1, "guarded": 1} {
		path, err := build(ctx, folder, program, arch, "-w") // -w keeps the symbols and omits the debug information
		if err != nil {
			return nil, err
		}
		file, err := elf.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read the program %s: %w", program, err)
		}
		symbols, err := file.Symbols()
		if err != nil {
			return nil, fmt.Errorf("read the symbols of %s: %w", program, err)
		}
		for _, s := range symbols {
			if int(s.Section) < len(file.Sections) && file.Sections[s.Section].Type != elf.SHT_NOBITS {
				added[packageOf(s.Name)] += sign * int64(s.Size) //nolint:gosec // far below the limit
			}
		}
		if err := file.Close(); err != nil {
			return nil, fmt.Errorf("read the program %s: %w", program, err)
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

// packageOf returns the package of a symbol such as "net/http.(*Client).Do". What the linker
// makes itself, such as type descriptors, is of the package "the linker's".
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
