package main

import (
	"context"
	"debug/elf"
)

// sizes has the sizes of the two programs' sections, in bytes. The files are larger, because they
// have padding between segments. A segment on arm64 begins at a multiple of 64 KB, so the sizes of
// the files would hide any smaller difference.
type sizes struct{ bare, guarded uint64 }

func (s sizes) added() uint64    { return s.guarded - s.bare }
func (s sizes) percent() float64 { return 100 * float64(s.added()) / float64(s.bare) }

// measure builds both programs for an architecture into the folder, and returns their sizes.
func measure(ctx context.Context, folder, arch string) (s sizes, err error) {
	for program, size := range map[string]*uint64{"bare": &s.bare, "guarded": &s.guarded} {
		err := build(ctx, folder, program, arch, "-s -w", func(file *elf.File) error {
			for _, section := range file.Sections {
				if section.Type != elf.SHT_NOBITS {
					*size += section.FileSize
				}
			}
			return nil
		})
		if err != nil {
			return sizes{}, err
		}
	}
	return s, nil
}
