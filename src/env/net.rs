//! temporary
use std::io;
use std::net::SocketAddr;
/// l
pub struct Listener;
/// c
pub struct Conn;
/// r
pub struct ReadHalf;
/// w
#[derive(Clone)]
pub struct WriteHalf;
impl Listener { /// a
 pub async fn accept(&self)->io::Result<Conn>{unimplemented!()} }
impl Conn { /// p
 pub fn peer(&self)->SocketAddr{unimplemented!()} /// s
 pub fn split(self)->(ReadHalf,WriteHalf){unimplemented!()} /// i
 pub fn id(&self)->u64{0} }
impl ReadHalf{ /// r
 pub async fn read(&mut self,b:&mut [u8])->io::Result<usize>{let _=b;unimplemented!()} /// s
 pub fn shutdown(&self){} }
impl WriteHalf{ /// w
 pub async fn write_all(&mut self,b:&[u8])->io::Result<()>{let _=b;unimplemented!()} /// s
 pub fn shutdown(&self){} }
