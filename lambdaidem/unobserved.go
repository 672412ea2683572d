package lambdaidem

import (
	"log/slog"
	"slices"
)

// unobserved reports whether the observer is known to ignore events of this kind with this
// error. The guard then does not make the event.
func (g *Guard) unobserved(kind Kind, err error) bool {
	return ignores(g.opts.Observer, kind, err)
}

// ignores reports whether o is one of this package's observers and ignores events of this
// kind with this error.
func ignores(o Observer, kind Kind, err error) bool {
	switch o := o.(type) {
	case discard:
		return true
	case warnings:
		return kind.level(err) < slog.LevelWarn
	case observers:
		return !slices.ContainsFunc(o, func(each Observer) bool { return !ignores(each, kind, err) })
	}
	return false
}
