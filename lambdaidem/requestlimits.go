package lambdaidem

// outOfBounds returns an error if the request could not be decoded, or if it exceeds a
// limit such as Options.MaxBody. Otherwise it returns nil.
func (g *Guard) outOfBounds(r *Request) *Error {
	if size := len(r.Host) + len(r.Path) + len(r.Route) + len(r.Query); size > g.opts.MaxURI {
		return uriTooLong(size, g.opts.MaxURI)
	}
	switch {
	case r.malformed != nil:
		return r.malformed
	case r.nHeaders > g.opts.MaxHeaders:
		return headersTooMany(r.nHeaders, g.opts.MaxHeaders)
	case len(r.Body) > g.opts.MaxBody:
		return bodyTooLarge(int64(g.opts.MaxBody))
	}
	return nil
}
