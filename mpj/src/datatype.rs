//! What can be sent: plain old data.

/// An element of a message: any type whose values are just their bytes. All primitive numbers and
/// arrays of them are, and a structure of such fields without padding can say so by derive.
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq, mpj::Pod, mpj::Zeroable)]
/// #[bytemuck(crate = "mpj::bytemuck")]
/// #[repr(C)]
/// struct Particle {
///     position: [f64; 3],
///     charge: f64,
/// }
///
/// let sum: Vec<f64> = mpj::local::run(2, |world| {
///     if world.rank() == 0 {
///         world.send(&[Particle { position: [1.0, 2.0, 3.0], charge: -1.0 }], 1, 0).unwrap();
///         return 0.0;
///     }
///     let (particles, _) = world.recv_vec::<Particle>(0, 0).unwrap();
///     particles[0].position.iter().sum()
/// })?;
/// assert_eq!(sum, [0.0, 6.0]);
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub trait Datatype: bytemuck::Pod + Send + Sync {}

impl<T: bytemuck::Pod + Send + Sync> Datatype for T {}
