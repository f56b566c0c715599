# filled by the installation room
