"""What goes with what: versions, flags, fields, gates, Windows builds, images and downloads, as data with
reasons."""
